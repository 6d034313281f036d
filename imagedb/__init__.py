"""What the images are: attacks, target models, classes, images, their import, files and API."""
