"""Ways to run an attempt: `fresh` processes, `forked` ones (`zygote`), `warm` ones (`worker`)."""
