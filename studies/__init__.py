"""What people did with the images: studies, datasets, participants, ratings, checks and pay."""
