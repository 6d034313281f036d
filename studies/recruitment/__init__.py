"""Recruitment on Prolific: what the service says and wants, and the client that speaks with it. Pure: no Django."""
