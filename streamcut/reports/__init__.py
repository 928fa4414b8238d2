"""Pages and plots about trained models."""
