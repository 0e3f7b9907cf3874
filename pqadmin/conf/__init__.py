"""Configuration: settings from the environment, and the secret key."""
