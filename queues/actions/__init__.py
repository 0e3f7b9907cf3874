"""Actions of operators: an operation with its trash and audit records in one transaction."""
