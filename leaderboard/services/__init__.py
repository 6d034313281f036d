"""What writes the leaderboard's tables."""
