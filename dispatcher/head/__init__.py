"""The head that leads an experiment: `dispatcher.head.head` takes the lead and leads to the end.

`led_experiment`: joins the rooms and winds them up. `beginning`: the first rows that a head writes.
`engine_inbox`: the engine as other threads reach it. `lead`: taking the lead, alone or in the place
of another head. `workers` and `drivers`: the agents, on this machine and on others, started, asked
and ended together. `user_requests`: requests of users, turned into facts. `notice_board`, `story`
and `logs`: notices and the log. `clock` and `collector`: its time, and its memory.
"""
