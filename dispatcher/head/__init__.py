"""Parts of a head that leads an experiment; `dispatcher.head.head` joins them.

`lead`: taking the lead, alone or in the place of another head. `nested`: processes in which no
experiment may begin. `workers`: the agents, on this machine and on others, started, asked and ended
together. `user_requests`: requests of users, turned into facts. `notice_board` and `logs`: notices
and the log. `clock` and `collector`: its time, and its memory.
"""
