"""What a head has about it while it leads an experiment; `dispatcher.head` joins them.

`lead`: how it comes to lead, alone or in the place of another one. `nested`: where none may begin.
`crew`: its agents, here and elsewhere, had, asked and ended together. `user_requests`: what users
ask, turned into facts. `notice_board` and `logs`: what it has to say. `clock` and `collector`: its
time, and its memory.
"""
