"""What the widgets say: one module per widget, in it one table per language."""
