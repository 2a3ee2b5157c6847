"""The composition root: configuration in, running services out. The only folder that names what is behind a door."""
