"""``bequeath experiment``: whole experiments: listed, exported, changed, copied, deleted."""
