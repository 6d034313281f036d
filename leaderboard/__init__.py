"""What follows from the ratings: statistics, stored results, public pages and API."""
