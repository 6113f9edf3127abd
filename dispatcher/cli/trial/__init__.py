"""``bequeath trial``: one trial or all of them: listed, followed, ended, and what they left."""
