"""The web app: plain files that a browser runs as they are, and what a server needs to hand them out."""
