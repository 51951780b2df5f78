"""Arrays in, matplotlib figures out; one module per lesson, one place for how they look."""
