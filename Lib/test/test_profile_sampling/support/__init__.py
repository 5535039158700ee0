"""What tests share: profiles made by hand, sessions, checks of results."""
