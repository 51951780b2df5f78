"""A grader for assignments: student code runs in a sandbox, the oracle outside its reach."""
