"""The plots of the leaderboard. Pure: plain values in, a drawing out, and one drawing as SVG or as PNG."""
