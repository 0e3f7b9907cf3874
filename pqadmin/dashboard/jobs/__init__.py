"""The pages of bulk jobs."""
