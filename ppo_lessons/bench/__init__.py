"""`ppo-lessons bench`: ours beside its peers, alternately, in one run, as ratios.

    cli       the command line, the rounds, Ctrl-C
    sections  what is measured, what is compared with what, and the goals
    measure   one run in a process of its own, pinned to one core
    child     what that process does first: pin itself, run, say what it took
    clock     what the seconds count, for all alike
    ours, sb3, cleanrl, purejaxrl    the runs themselves
    results   medians, ratios, the JSON
    table     the same for people

A number of steps per second says more about the machine than about the code, and a machine is never
the same twice. So every claim is a ratio of two runs that took turns.
"""
