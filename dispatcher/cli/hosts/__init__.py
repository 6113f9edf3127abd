"""``bequeath hosts``: machines that are reached by SSH, made known, checked and tidied."""
