"""What the course claims about speed, memory and learning, measured beside a peer in one run."""
