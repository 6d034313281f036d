"""Accounts of people who download: sign-up, the account page, and tokens of the API."""
