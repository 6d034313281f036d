"""Everything that writes: one module for participations, previews, the life of a study and its materials."""
