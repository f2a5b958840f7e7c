"""What the page shows, one part a file. Views render what they are given: they read nothing and decide nothing."""
