"""The user's source: from stack frames to lines and statements."""
