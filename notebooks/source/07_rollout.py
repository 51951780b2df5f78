# %% [markdown]
# # Rollouts
#
# **Where does an episode end?**
#
# A keeper climbs a lighthouse and lights the lamp. From then on each night pays 1, for ever. You watch
# for six nights, then you go home. The lamp burns on.
#
# What was the last night worth that you saw? If your code takes *you left* for *the lamp went out*, your
# agent learns that a burning lamp is worth about a quarter of its true value, and gives it up for a
# smaller sum. The mistake is one line. It raises no error, and the learning curve looks healthy. There
# are five more of its kind, all where something ends: an episode, or the rollout. Here you meet each, see
# what it does to a critic and to a policy, and learn three questions and a count that find them.
#
# The words from [lesson 05](05_critic.ipynb) and [lesson 06](06_gae.ipynb): a **critic** V(s) says how
# much discounted reward to expect from s on. The **TD error** of a step is
# δ = reward + γ·V(next state) − V(state). **GAE** sums the TD errors that follow, each weighted by one
# more factor γλ; the mark that a TD error so leaves on earlier steps is its **trace**. The sum is the
# **advantage** Â, and Â + V is what the critic learns from. Numbers lie in tables of shape [T, N]: T
# steps in time, N environments side by side.

# %% tags=["nbval-ignore-output"]
from dataclasses import fields, replace
from itertools import product

import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from ppo_lessons import claim, compare, predict, quiz, recorded, setup, show, show_source
from ppo_lessons.critic import td_errors
from ppo_lessons.envs import GymEnvs, Lighthouse, make_envs
from ppo_lessons.figures import rollout as figures
from ppo_lessons.gae import compute_gae
from ppo_lessons.rollout import ENDINGS, collect_rollout, fit_table, score_values, start_carry
from ppo_lessons.training_loop import Parts, PPOConfig, train
from ppo_lessons.widgets import EndKinds

setup()

# %% [markdown]
# ## Three questions first

# %%
quiz("rollout.review_value")

# %%
quiz("rollout.review_td")

# %% [markdown]
# The third is on the trace:

# %%
quiz("rollout.review_trace")

# %% [markdown]
# ## A lighthouse
#
# ```
# foot --- climb: 0 ---> stairs --- climb: 0 ---> lamp --- keep it lit: 1 ---> lamp ---> ... for ever
#   |
#   +--- take the offer: 7, once ---> end
# ```
#
# At the foot the keeper may climb, or take 7 and go. Further up there is nothing to choose. With
# γ = 0.9, what is it worth to stand at the burning lamp?

# %%
predict("rollout.lamp", None)

# %% [markdown]
# The value of the lamp is 1 for tonight, plus γ times the value of the lamp tomorrow: V = 1 + γ·V. So it
# is 1 / (1 − γ). The stairs are worth γ times that, the foot γ² times that, if the keeper climbs.

# %%
gamma = 0.9
lamp = 1 / (1 - gamma)
truth = torch.tensor([gamma**2 * lamp, gamma * lamp, lamp])  # foot, stairs, lamp
print("foot, stairs, lamp:", [round(value, 2) for value in truth.tolist()])
compare("rollout.lamp", lamp)

# %% [markdown]
# Climbing is worth 8.1, and the offer is 7. A good keeper climbs.
#
# Nobody can watch for ever, so one puts a **time limit** around a task: after so many steps it is cut.
# And to get many steps at once, one steps N copies of it with one call. Such a bundle is a **vector
# environment**. Both are gymnasium's own here, and `Lighthouse` is an ordinary gymnasium environment.


# %%
def lighthouses(limits, mode=AutoresetMode.SAME_STEP):
    makers = [lambda limit=limit: TimeLimit(Lighthouse(offer=7), limit) for limit in limits]
    return SyncVectorEnv(makers, autoreset_mode=mode)


# %% [markdown]
# (Leave `mode` alone for now. It says how the next episode is begun; a later section is on its three ways.)
#
# The first policies are fixed ones: each keeper does the same thing at every step.


# %%
class Keepers:
    def __init__(self, *actions):  # one for each environment: 0 climbs, 1 takes the offer
        self.actions = torch.tensor(actions)

    def sample(self, observations, generator):
        return self.actions, torch.zeros(len(self.actions))


# %% [markdown]
# `collect_rollout` lets a policy act for T steps and writes down what happened. Such a record is a
# **rollout**. It holds facts, and no critic's opinion. `watch` makes lighthouses and collects one:


# %%
def watch(*actions, limits, num_steps, mode=AutoresetMode.SAME_STEP):
    envs = GymEnvs(lighthouses(limits, mode))
    start, policy, generator = start_carry(envs, seed=0), Keepers(*actions), torch.Generator()
    return collect_rollout(envs, policy, start, num_steps=num_steps, generator=generator)[0]


# %% [markdown]
# Eight rows of one keeper who climbs, watched for six steps at a time:

# %%
rollout = watch(0, limits=[6], num_steps=8)
place = ("foot", "stairs", "lamp")
print("row  from    reward  to      terminated  truncated")
for t in range(8):
    start, reached = (int(x[t, 0]) for x in (rollout.observations, rollout.next_observations))
    flags = [bool(x[t, 0]) for x in (rollout.terminated, rollout.truncated)]
    row = f"{t:3}  {place[start]:8}{rollout.rewards[t, 0]:4.0f}    {place[reached]:8}"
    print(f"{row}{flags[0]!s:12}{flags[1]}")

# %% [markdown]
# Row 5 is the last that was watched, and its flag `truncated` says so. There are two flags:
#
# - **terminated**: the task itself is over. Nothing comes after it, so its future is worth 0.
# - **truncated**: we stopped watching. The future exists, and we do not see it.
#
# A step has **ended** an episode if one of the two flags is set, or both. Then the environment is **reset**, and the
# next row belongs to another episode: row 6 starts at the foot.

# %%
reached, restarted = rollout.next_observations[5, 0], rollout.observations[6, 0]
claim(
    "rollout.flag_row",
    "The flag stands in row 5, whose step reached the lamp; row 6 starts at the foot.",
    rollout.truncated[:, 0].nonzero().item() == 5 and reached == 2 and restarted == 0,
    control=("It stands in the row that starts at the foot.", rollout.observations[5, 0] == 0),
)

# %% [markdown]
# (Some code, CleanRL's `ppo.py` for one, stores the flag one row later, beside the observation that
# follows. Then row 6 is the one that is marked. Read the code before you read the flag.)
#
# So a rollout keeps *two* observations per row: the one the action was chosen on, and the one that the
# step reached, before any reset. At row 5 the second is the **final observation** of its episode. No row
# starts there. If it is not kept here, it is lost.
#
# ## A limit is not a death
#
# Give the rollout a critic that is right: 8.1, 9 and 10. In a world without chance, its TD errors are 0.


# %%
def value_of(table, observations):
    return table[observations[..., 0].long()]


values = value_of(truth, rollout.observations)
next_values = value_of(truth, rollout.next_observations)

# %% [markdown]
# Now somebody writes `done = terminated or truncated`, and counts 0 for the future of each step that is
# done. What becomes of the TD error of row 5?

# %%
predict("rollout.td_error", None)

# %%
never = torch.zeros_like(rollout.truncated)  # right here: no step of this keeper is terminated
apart = td_errors(rollout.rewards, values, next_values, never, gamma=gamma)
merged = td_errors(rollout.rewards, values, next_values, rollout.ended, gamma=gamma)
compare("rollout.td_error", merged[5, 0])

# %% [markdown]
# 1 + 0 − 10. What is missing is γ·V(lamp) = 9: the whole future. (Until 2022 the interface of gym, from
# which gymnasium comes, had one flag only, `done`, and hid the other fact in `info["TimeLimit.truncated"]`.
# Much code is still written that way.)

# %%
claim(
    "rollout.limit_is_no_death",
    "With the flags apart, each TD error of the right critic is 0.",
    apart.abs().max() < 1e-4,
    control=("With the flags merged, each is 0.", merged.abs().max() < 1e-4),
)

# %% [markdown]
# The trace carries the −9 back through the episode. Let λ be 0.8 here; then the factor per step is
# γλ = 0.9 · 0.8 = 0.72. The package keeps the ways to handle an end in a table, `ENDINGS`, the right one and the wrong ones:

# %%
settings = {"gamma": gamma, "gae_lambda": 0.8}
facts = (rollout.rewards, values, next_values, rollout.terminated, rollout.truncated)
right, wrong = (ENDINGS[name](*facts, **settings)[:6, 0] for name in ("two masks", "flags merged"))

# %%
show(
    figures.limit(right.numpy(), wrong.numpy(), rollout.observations[:6, 0, 0].int().tolist()),
    alt="Advantages of six steps up to a time limit. With two masks all are 0. With the flags merged "
    "they fall from -1.7 at the foot to -9 at the last step.",
)

# %% [markdown]
# Six steps that went as well as can be, and all six get a negative advantage. Nothing in the world
# changed at the limit. The critic sees the lamp, no clock, and the lamp looks the same on every night.
#
# ## Two flags, two masks
#
# To let V of the next state stand for rewards that nobody saw is, as you know, to **bootstrap**. GAE needs
# to know two things about each step: does it bootstrap, and does the sum go on into the next row? They
# are not the same:
#
# $$\delta_t = r_t + \gamma\,(1 - \text{terminated}_t)\,V(s_{t+1}) - V(s_t)
# \qquad\qquad
# \hat{A}_t = \delta_t + \gamma\lambda\,(1 - \text{ended}_t)\,\hat{A}_{t+1}$$
#
# **`terminated` cuts the bootstrap. `ended` cuts the recursion.**
#
# | what the step did | is the future counted? | does the sum go on into the next row? |
# | --- | --- | --- |
# | went on | yes, V of the next state | yes |
# | truncated | yes, V of the state that was reached | no, the next row is another episode |
# | terminated | no, it is worth 0 | no |
#
# One mask for both jobs cannot write the middle line, unless the missing γ·V is added to the *reward*
# first. Stable-Baselines3 does it so, and gets the same δ. `compute_gae`, which you know from lesson 06,
# has the two masks.
#
# Two keepers side by side: the first climbs and is truncated, the second takes the offer at every step
# and is terminated. Put 100 on top of the value behind their last steps, and see which advantages move.

# %%
both = watch(0, 1, limits=[6, 6], num_steps=8)
both_values = value_of(truth, both.observations)
both_next = value_of(truth, both.next_observations)


# %%
def with_100_behind(rows):
    facts = both.rewards, both_values, both_next + 100 * rows, both.terminated, both.truncated
    return compute_gae(*facts, **settings)


unchanged = with_100_behind(torch.zeros_like(both.ended))

# %% [markdown]
# Behind the terminated steps there is nothing that could be worth 100:

# %%
claim(
    "rollout.terminated_cuts",
    "100 more behind each terminated step change no advantage.",
    torch.equal(with_100_behind(both.terminated), unchanged),
    control=(
        "100 more behind each truncated step change none.",
        torch.equal(with_100_behind(both.truncated), unchanged),
    ),
)

# %% [markdown]
# A step may be both: the offer is taken at the moment when the limit strikes. Then the task is over,
# whoever watches. `terminated` wins.

# %%
once = watch(1, limits=[1], num_steps=1)
before, behind = torch.tensor([[8.1]]), torch.tensor([[8.1]])
at_once = compute_gae(once.rewards, before, behind, once.terminated, once.truncated, **settings)
going_on = torch.zeros_like(once.terminated)
limit_alone = compute_gae(once.rewards, before, behind, going_on, once.truncated, **settings)
print("terminated", once.terminated.item(), " truncated", once.truncated.item())

# %%
claim(
    "rollout.both",
    "Both flags stand in one row, and its advantage is that of a terminated one, 7 − 8.1.",
    once.terminated & once.truncated & ((at_once + 1.1).abs() < 1e-4),
    control=("With `truncated` alone it is the same.", (limit_alone + 1.1).abs() < 1e-4),
)

# %% [markdown]
# ### When the limit is the task
#
# A football match *is* over after ninety minutes: being ahead then is worth all the more. There the limit
# belongs to the task, so the step is `terminated`, and the agent must be able to see the clock. Otherwise
# one observation would need several values. (`TimeLimit` always says `truncated`, so here you turn the
# flag yourself. A second wrapper, `TimeAwareObservation`, adds the clock to what is observed.) With four
# nights left, the lamp is then worth 1 + γ + γ² + γ³ = 3.44, with one night left 1.

# %%
nights = torch.tensor([[4.0], [3.0], [2.0], [1.0], [0.0]])
clock = (1 - gamma**nights) / (1 - gamma)  # what is left, as a critic with a clock sees it
blind = clock[:-1].mean().expand(5, 1)  # one value for all nights


# %%
def match_errors(critic):
    over = torch.tensor([[False], [False], [False], [True]])
    return td_errors(torch.ones(4, 1), critic[:-1], critic[1:], over, gamma=gamma).abs()


claim(
    "rollout.clock",
    "A critic that sees the clock has all TD errors 0 up to a limit that is the end.",
    match_errors(clock).max() < 1e-4,
    control=("So has one with a single value.", match_errors(blind).max() < 0.1),
)

# %% [markdown]
# So ask of each limit: *does the world end there, or do we?* Pardo et al. (2018) give both answers, one
# for each case. ("A time limit must be bootstrapped" is among the course's [half
# truths](../docs/half_truths.md) for that reason.) In most benchmarks it is we: the limit is there so that
# a run gets to see more starts.
#
# ## Five rules, by hand
#
# Four rows, each reward 1, γ = 0.9, λ = 0.8. The step of row 1 is truncated. The critic's values are in
# the boxes.

# %%
v = torch.tensor([[5.0], [6.0], [1.0], [2.0]], dtype=torch.float64)
v_next = torch.tensor([[6.0], [7.0], [2.0], [3.0]], dtype=torch.float64)
stopped = torch.tensor([[False], [True], [False], [False]])

# %%
show(
    figures.worked_case(*(x[:, 0].tolist() for x in (v, v_next, stopped))),
    alt="States with their values. Row 0 has V = 5, row 1 has V = 6 and reaches a state with V = 7; "
    "there the time limit stands. Row 2 has V = 1, row 3 has V = 2 and reaches V = 3.",
)

# %% [markdown]
# Compute the advantage of row 1. Rows 2 and 3 are another episode, so one line is enough.

# %%
predict("rollout.row_one", None)

# %% [markdown]
# Each wrong way is `compute_gae` that was told something untrue. Merged flags, for instance:

# %%
show_source(ENDINGS["flags merged"])

# %% [markdown]
# The right way and four wrong ones:

# %%
worked = (torch.ones_like(v), v, v_next, torch.zeros_like(stopped), stopped)
five = {name: ENDINGS[name](*worked, **settings)[:, 0] for name in list(ENDINGS)[:5]}
for name, row in five.items():
    print(f"{name:46}", "  ".join(f"{advantage:6.3f}" for advantage in row))
compare("rollout.row_one", five["two masks"][1])

# %% [markdown]
# By hand:
#
# | rule | row 1 | row 0, with δ = 1 + 0.9·6 − 5 = 1.4 | what is believed |
# | --- | --- | --- | --- |
# | two masks | 1 + 0.9·7 − 6 = **1.3** | 1.4 + 0.72·1.3 = **2.336** | the truth |
# | flags merged | 1 + 0 − 6 = −5 | 1.4 − 0.72·5 = −2.2 | the world ended with our watching |
# | truncated ignored | 1.3 + 0.72·3.024 = 3.477 | 1.4 + 0.72·3.477 = 3.904 | the next episode is this one |
# | the same, next value after the reset | 1 + 0.9·1 − 6 + 0.72·3.024 = −1.923 | 0.016 | and its start is where row 1 led |
# | trace cut, next value after the reset | 1 + 0.9·1 − 6 = −4.1 | 1.4 − 0.72·4.1 = −1.552 | row 1 led to the start |

# %%
exact = torch.tensor([2.336, 1.300, 3.024, 1.700], dtype=torch.float64)
off = {name: (row - exact).abs() for name, row in five.items()}
claim(
    "rollout.two_masks",
    "With two masks the advantages are 2.336, 1.300, 3.024 and 1.700.",
    off["two masks"].max() < 1e-9,
    control=("So they are with the flags merged.", off["flags merged"].max() < 1e-9),
)

# %% [markdown]
# None of the five rules gives numbers that look broken. Four are wrong.

# %%
wrong = list(five)[1:]
claim(
    "rollout.four_mistakes",
    "Each of the four mistakes gets rows 0 and 1 wrong by more than 1, and rows 2 and 3 right.",
    all(off[name][:2].min() > 1 and off[name][2:].max() < 1e-9 for name in wrong),
    control=("Each gives row 1 too little.", all(five[name][1] < exact[1] for name in wrong)),
)

# %% [markdown]
# These are not inventions. In 2026 a user [reported](https://github.com/Toni-SM/skrl/issues/449) of a
# known library that its setting for time limits had two values: one merged the flags, the other ignored
# `truncated`. A user of another library [told](https://github.com/vwxyzjn/cleanrl/issues/198) of an agent
# that stayed in a poor policy until the bootstrap at time limits was put in.
#
# ## Three questions that find them
#
# You are handed somebody's code and cannot read it. Shake its inputs, and look at the advantages,
# before anything normalises them.
#
# 1. Change everything *after a reset*. Does an advantage before it move? It must not.
# 2. Change the value of the *state that a limit hid*. Does the advantage of that step move? It must.
# 3. Change the value of the *state behind the last row*. Does the last advantage move? It must, unless that
#    row terminated.
#
# For this the critic may be wrong. Twenty-two rows of the keeper hold three whole episodes and a piece.
# Row 5 is the first with `truncated`; row 21 is the last of the rollout.

# %%
rollout = watch(0, limits=[6], num_steps=22)
guess = torch.tensor([5.0, 6.0, 7.0])
rewards = rollout.rewards
values, next_values = (
    value_of(guess, x) for x in (rollout.observations, rollout.next_observations)
)

# %% [markdown]
# `moves` adds 100 to some rows of each table, and says whether the advantages of some rows change:


# %%
def moves(way, rows, *shaken):
    before = [rewards, values, next_values]
    after = [facts.clone() for facts in before]
    for facts, where in zip(after, shaken, strict=True):
        facts[where] += 100
    flags = rollout.terminated, rollout.truncated
    first, second = (way(*facts, *flags, **settings)[rows] for facts in (before, after))
    return not torch.equal(first, second)


# %% [markdown]
# The three questions:


# %%
def fingerprint(way):
    nothing, later = slice(0), slice(6, None)
    yield moves(way, slice(0, 6), later, later, later)
    yield moves(way, [5], nothing, nothing, [5])
    yield moves(way, [21], nothing, nothing, [21])


# %%
print(f"{'does an advantage move?':48}after reset  hidden  behind last")
prints = {name: tuple(fingerprint(way)) for name, way in ENDINGS.items()}
for name, answers in prints.items():
    words = ["yes" if answer else "no" for answer in answers]
    print(f"{name:48}{words[0]:13}{words[1]:8}{words[2]}")

# %% [markdown]
# The last line is a fifth mistake: to count nothing behind the last row. You meet it again below.

# %%
asked = {
    n: [name for name in prints if prints[name][:n] == (False, True, True)[:n]] for n in (1, 3)
}
claim(
    "rollout.fingerprints",
    "Of the six ways only two masks answers no, yes, yes.",
    asked[3] == ["two masks"],
    control=("Of the six only two masks answers the first with no.", asked[1] == ["two masks"]),
)

# %% [markdown]
# The first question is the rule to remember: **nothing after a reset may matter**. It finds every way in
# which another episode leaks in. Merged flags pass it, since they ignore too much and not too little.
#
# ## Where is the last observation?
#
# A vector environment cannot stop when one of its copies ends. It must begin a new episode there and go
# on. That is called **autoreset**, and gymnasium has three modes of it. They differ in what `step` gives
# back at an end, and code for one of them is wrong in another, as a rule without an error.
#
# Take one lighthouse with a limit of three, and write down what each call gives back. The action of the
# fourth call is *take the offer*.


# %%
def calls(mode, actions=(0, 0, 0, 1, 0)):
    envs = lighthouses([3], mode)
    envs.reset(seed=0)
    for action in actions:
        observation, reward, terminated, truncated, extra = envs.step([action])
        final = extra["final_obs"][0][0] if "final_obs" in extra else None
        yield observation[0, 0], reward[0], terminated[0], truncated[0], final


# %%
def print_calls(lines):
    print("call  back    reward  terminated  truncated  final_obs")
    for number, (back, reward, *flags, final) in enumerate(lines, start=1):
        row = f"{number:4}  {place[int(back)]:8}{reward:4.0f}    {flags[0]!s:12}{flags[1]!s:11}"
        print(row + ("-" if final is None else place[int(final)]))


# %% [markdown]
# **SAME_STEP** resets within the call that ends the episode:

# %%
same = list(calls(AutoresetMode.SAME_STEP))
print_calls(same)

# %% [markdown]
# Look at call 3. What came back is already the first observation of the *next* episode. The final
# observation is beside it, in `final_obs`.

# %%
claim(
    "rollout.same_step",
    "In SAME_STEP the call that ends the episode gives back the foot, and the lamp in final_obs.",
    bool(same[2][0] == 0 and same[2][4] == 2),
    control=("Call 2, which ends none, has the lamp in final_obs, too.", bool(same[1][4] == 2)),
)

# %% [markdown]
# Whoever bootstraps from what came back bootstraps from the next episode's start: −4.1 instead of 1.3, the
# last rule of the five by hand.
#
# **NEXT_STEP** resets in the call after that. In the fourth call the keeper wants to take the 7. What does
# that call earn?

# %%
predict("rollout.fourth_call", None)

# %%
following = list(calls(AutoresetMode.NEXT_STEP))
print_calls(following)
compare("rollout.fourth_call", following[3][1])

# %% [markdown]
# Nothing: the call resets, and does nothing else. Its action is ignored.

# %%
claim(
    "rollout.junk_row",
    "In NEXT_STEP the call after an end ignores its action and earns 0.",
    bool(following[3][1] == 0 and not following[3][2] and following[3][0] == 0),
    control=("In SAME_STEP the same call earns 0, too.", bool(same[3][1] == 0)),
)

# %% [markdown]
# So a table of this run holds a row that no policy had a hand in: from the lamp to the foot, for a reward
# of 0. And `final_obs` does not exist in this mode, since what came back in call 3 *is* the final
# observation. Code that looks for `final_obs` finds nothing, and often goes on without.

# %%
claim(
    "rollout.next_step",
    "In NEXT_STEP the call that ends the episode gives back the lamp, and final_obs never comes.",
    bool(following[2][0] == 2) and all(line[4] is None for line in following),
    control=("In SAME_STEP it never comes, either.", all(line[4] is None for line in same)),
)

# %% [markdown]
# **DISABLED** resets nothing. The copy waits where it is, and whoever steps it is refused:


# %%
def refused(mode):
    try:
        list(calls(mode))
    except AssertionError:  # gymnasium's own
        return True
    return False


# %%
claim(
    "rollout.disabled",
    "In DISABLED the call after an end is refused.",
    refused(AutoresetMode.DISABLED),
    control=("In NEXT_STEP it is refused.", refused(AutoresetMode.NEXT_STEP)),
)

# %% [markdown]
# You reset the copies that ended, by a mask. Here the first of two has reached its limit of three:

# %%
waiting = lighthouses([3, 5], AutoresetMode.DISABLED)
waiting.reset(seed=0)
flags = [waiting.step([0, 0])[3] for _ in range(3)]
observations, _ = waiting.reset(options={"reset_mask": flags[-1]})
print([place[int(height)] for height in observations[:, 0]])

# %% [markdown]
# In one picture, with keepers who climb. Solid boxes belong to the first episode, dashed ones to the
# second:


# %%
def boxes(mode, num_calls, junk=None):
    episode = 0
    for number, (back, *_, final) in enumerate(calls(mode, [0] * num_calls), start=1):
        episode += final is not None or number == junk  # what came back is the next episode's
        yield {"observation": back, "final": final, "episode": episode, "step": number != junk}


# %%
drawn = {"SAME_STEP": list(boxes(AutoresetMode.SAME_STEP, 5))}
drawn["NEXT_STEP"] = list(boxes(AutoresetMode.NEXT_STEP, 5, junk=4))
drawn["DISABLED"] = list(boxes(AutoresetMode.DISABLED, 3))
show(
    figures.autoreset(drawn),
    alt="Boxes for the calls of three modes. In SAME_STEP the third call gives back the foot, and the "
    "lamp as final_obs. In NEXT_STEP it gives back the lamp, and the fourth call is marked as no "
    "step. In DISABLED it gives back the lamp, and the fourth call is refused.",
)

# %% [markdown]
# | mode | what comes back at an end | the final observation | the next call |
# | --- | --- | --- | --- |
# | SAME_STEP | the next episode's first observation | in `final_obs` | is its first step |
# | NEXT_STEP | the final observation | is what came back | only resets: no step |
# | DISABLED | the final observation | is what came back | is refused until you reset |
#
# Code that you find on the web may be written for one of them alone. Before version 1.0 gymnasium had
# SAME_STEP only, and the name was `final_observation`; 1.0 had NEXT_STEP only; the three modes came with
# 1.1. In Stable-Baselines3 the name is `terminal_observation`. Which mode do you have? If you do not say,
# the middle one:

# %%
default = SyncVectorEnv([Lighthouse]).metadata["autoreset_mode"]
claim(
    "rollout.default_mode",
    "A SyncVectorEnv that is not told otherwise is in NEXT_STEP.",
    default == AutoresetMode.NEXT_STEP,
    control=(
        "The course's `make_envs` leaves it at that.",
        make_envs("CartPole-v1", 1).autoreset_mode == AutoresetMode.NEXT_STEP,
    ),
)

# %% [markdown]
# ## One rollout from three modes
#
# You do not want to think of this in every line. `GymEnvs` stands between gymnasium and the loop, knows
# the mode, and gives back the same facts in each: the final observation always in `next_observations`,
# and `valid`, which is false for the row that was no step.

# %%
show_source(GymEnvs.step)

# %% [markdown]
# Three keepers, one of whom always takes the offer, in all three modes. A row with `valid` true is a
# **valid row**. Compare the first 24 valid rows of each keeper, field by field.

# %%
by_mode = [watch(0, 0, 1, limits=[6, 4, 6], num_steps=48, mode=mode) for mode in AutoresetMode]
names = [field.name for field in fields(rollout)]


def rows_of(played, name, n, only_valid):
    keep = played.valid[:, n] if only_valid else slice(None)
    return getattr(played, name)[:, n][keep][:24]


# %%
def all_agree(only_valid):
    for name, n in product(names, range(3)):
        first, *others = (rows_of(played, name, n, only_valid) for played in by_mode)
        if not all(torch.equal(first, other) for other in others):
            return False
    return True


claim(
    "rollout.three_modes",
    "The valid rows are the same in all three modes, in every field.",
    all_agree(only_valid=True),
    control=("All rows are the same in all three modes.", all_agree(only_valid=False)),
)

# %% [markdown]
# And there is a count that tells you whether somebody's rollout is sound, in any mode: one valid row for each
# step that was made in it, be its episode finished or under way. Here are 13 calls of three keepers in
# NEXT_STEP. All episodes end with the last call: two keepers play 6 steps at a time, and one plays 1.

# %%
counted = watch(0, 0, 1, limits=[6, 6, 6], num_steps=13, mode=AutoresetMode.NEXT_STEP)
episodes = counted.ended.sum(dim=0)
steps = (episodes * torch.tensor([6, 6, 1])).sum()
print("episodes:", episodes.tolist(), " steps:", steps.item(), " rows:", counted.valid.numel())

# %%
claim(
    "rollout.count",
    "There are as many valid rows as the episodes have steps, 31.",
    counted.valid.sum() == steps == 31,
    control=("There are as many rows as that.", counted.valid.numel() == steps),
)

# %% [markdown]
# The course trains in SAME_STEP, where every row is valid. What a critic would learn from the other rows,
# you see in *What a critic learns*.
#
# ### Two more ways to write down what did not happen
#
# With `copy=False` gymnasium gives back the same array at each call, and overwrites it. Keep the arrays,
# and you hold one observation many times. (`GymEnvs` copies.)


# %%
def kept(copy):
    envs = SyncVectorEnv([Lighthouse], copy=copy)
    envs.reset(seed=0)
    first, second = (envs.step([0])[0] for _ in range(2))
    return first[0, 0], second[0, 0]  # heights after the first step and after the second


# %%
claim(
    "rollout.one_array",
    "With copy=False the height that you kept after the first step becomes that after the second.",
    bool(kept(copy=False)[0] == kept(copy=False)[1] == 2),
    control=("So it does with copy=True.", bool(kept(copy=True)[0] == 2)),
)

# %% [markdown]
# And copies that get the same seed begin in the same state. (Where only the reset draws chances, as in
# CartPole, their later episodes do, too.) You pay for N starts and get one.

# %%
own_seeds = make_envs("CartPole-v1", 4).reset(seed=0)
one_seed = torch.tensor(make_envs("CartPole-v1", 4).envs.reset(seed=[0] * 4)[0])
claim(
    "rollout.one_seed",
    "Four CartPoles with seeds of their own start in four states.",
    len(own_seeds.unique(dim=0)) == 4,
    control=("With one seed they do, too.", len(one_seed.unique(dim=0)) == 4),
)

# %% [markdown]
# ## The cut of a rollout
#
# A rollout ends after T steps, wherever its episodes are. That is no end of an episode, and sets no flag.
# The last row bootstraps like any other, from the state that it reached. The next rollout goes on from
# there: what it needs is handed over as the **carry**.
#
# One keeper, no limit in sight: twenty steps at once, and the same twenty in two rollouts.

# %%
envs, generator = GymEnvs(lighthouses([100])), torch.Generator()
whole, pieces, carry = watch(0, limits=[100], num_steps=20), [], start_carry(envs, seed=0)
for _ in range(2):
    piece, carry = collect_rollout(envs, Keepers(0), carry, num_steps=10, generator=generator)
    pieces.append(piece)

# %% [markdown]
# The carry holds where each environment is, and what the running episode has earned so far:

# %%
show_source(type(carry))

# %% [markdown]
# Compute the advantages of all three with the critic that is wrong, so that there is something to see:


# %%
def with_guess(piece, way=compute_gae):
    states = piece.observations, piece.next_observations
    values, next_values = (value_of(guess, state).double() for state in states)
    facts = piece.rewards.double(), values, next_values, piece.terminated, piece.truncated
    return way(*facts, **settings)[:, 0]


# %%
in_one, early, late = (with_guess(piece) for piece in (whole, *pieces))
show(
    figures.cut(in_one.numpy(), [early.numpy(), late.numpy()]),
    alt="Advantages of twenty rows, collected in one rollout and in two of ten. The second ten are the "
    "same. Of the first ten those close to the cut are smaller when there are two rollouts.",
)

# %% [markdown]
# Each TD error is the same, since δ looks only one state ahead, and that state was kept. What is missing
# is the far end of the sum: everything from row 10 on, which row t would have counted with (γλ)^(10 − t).
# (Behind row 19 there is a cut as well, in both, and so the lines fall there again.)

# %%
missing = 0.72 ** torch.arange(10, 0, -1) * in_one[10]
no_bootstrap = with_guess(pieces[0], ENDINGS["nothing after the last row"])
claim(
    "rollout.cut",
    "The later ten are the same; the earlier ten lose what row 10 would have sent back, and no more.",
    torch.allclose(late, in_one[10:]) and torch.allclose(early + missing, in_one[:10]),
    control=(
        "Without the bootstrap at the last row they lose no more than that, either.",
        torch.allclose(no_bootstrap + missing, in_one[:10], atol=0.5),
    ),
)

# %% [markdown]
# Where the critic is right the cut brings no bias, for there Â at row 10 is 0 on average. Where it is not,
# the cut trusts it a little earlier, like a smaller λ. Row 0 lost 0.72^10 = 4 % of Â at row 10, row 9 lost
# 72 %. Without the bootstrap the last row would lose γ·V as well.
#
# Who asks the critic about all these states? `score_values` does, once per row, and a second time only
# where the next row is not where the step led: at ends, and at the cut. (To score a rollout, as in lesson
# 05, has nothing to do with the score of an action.)

# %%
show_source(score_values)

# %% [markdown]
# ## What a critic learns
#
# One wrong advantage is a number. A critic that learns from it hands its error on to the next. So let one
# learn: a table with one value for the foot, one for the stairs and one for the lamp. It starts at 0.
# Each round scores the rows with the table as it is, and puts the mean of Â + V in its place.

# %%
show_source(fit_table)

# %% [markdown]
# Take λ = 0 for a moment, and four whole episodes, 24 rows. The lamp is worth 10. What does the table say
# of it with the flags merged? Of four nights at the lamp, three are followed by another night and one by
# nothing. The critic has no clock, so to it that is chance.

# %%
predict("rollout.merged_lamp", None)

# %%
heights = torch.tensor([0, 1, 2])


def learn(rollout, way=compute_gae, entry_of=heights, gae_lambda=0.8):
    settings = {"gamma": gamma, "gae_lambda": gae_lambda, "num_rounds": 120}
    return fit_table(rollout, entry_of, advantages_of=way, **settings)[-1]


# %% [markdown]
# `learn` does 120 such rounds, with one of the ways to handle ends:

# %%
episodes, flags_merged = watch(0, limits=[6], num_steps=24), ENDINGS["flags merged"]
zero, one = (learn(episodes, flags_merged, gae_lambda=number)[2] for number in (0.0, 1.0))
compare("rollout.merged_lamp", zero)

# %% [markdown]
# Each night the next one is missing with probability 1/4. So V = 1 + γ·(3/4)·V, and
# V = 1 / (1 − 0.9 · 3/4) = 3.08.

# %%
claim(
    "rollout.death_rate",
    "At λ = 0 the merged flags give the lamp 1 / (1 − 0.9 · 3/4), as if it went out one night in four.",
    abs(zero - 1 / (1 - 0.9 * 3 / 4)) < 1e-4,
    control=("At λ = 1 they give it the same.", abs(one - zero) < 0.1),
)

# %% [markdown]
# With a thousand nights instead of four it would be 1 / (1 − 0.9 · 999/1000) = 9.91. A limit that is long
# beside 1 / (1 − γ) hides the mistake. That is why it lives so long in code that is tried on tasks with
# long limits.
#
# Now λ = 0.8 again, and the 22 rows from before, three whole episodes and a piece. Learn with each of the
# ways:

# %%
learned = {name: learn(rollout, way) for name, way in ENDINGS.items()}

# %% [markdown]
# And a sixth mistake: the rows of NEXT_STEP that were no steps, learned like all others.

# %%
next_step = watch(0, limits=[6], num_steps=25, mode=AutoresetMode.NEXT_STEP)
everything = replace(next_step, valid=torch.ones_like(next_step.valid))
learned["the row of the reset is learned"] = learn(everything)
print(f"{next_step.valid.sum()} of {next_step.valid.numel()} rows are valid")

# %%
at_foot, _, at_lamp = ({name: table[n].item() for name, table in learned.items()} for n in range(3))
true_values = {"lamp_true": lamp, "foot_true": 8.1, "offer": 7.0}

# %% [markdown]
# What the right way and the six mistakes believe of the lamp and of climbing:

# %%
show(
    figures.learned(at_lamp, at_foot, **true_values),
    alt="Bars of learned values for seven ways to handle ends. Two masks and truncated ignored learn 10 "
    "for the lamp and 8.1 for climbing. All others learn less, and less than the offer of 7 for climbing.",
)

# %% [markdown]
# The right way finds 1 / (1 − γ), and it does not matter where the limit is:


# %%
def lamp_at_limits(way):
    return [learn(watch(0, limits=[limit], num_steps=22), way)[2] for limit in (3, 6, 11)]


right, wrong = lamp_at_limits(compute_gae), lamp_at_limits(ENDINGS["flags merged"])

# %%
claim(
    "rollout.right_value",
    "With two masks the lamp is worth 10, at a limit of 3, 6 or 11 steps.",
    all(abs(value - 10) < 1e-3 for value in right),
    control=("With the flags merged it is above 5 at one of these limits.", max(wrong) > 5),
)

# %% [markdown]
# ### The one that got away
#
# Five of the six mistakes teach too little. One of them teaches the truth: *truncated ignored*, with the
# right next value. Its sum runs on into the next episode. But what it picks up there are TD errors, and
# those of a critic that is right are 0. So the truth stays where it is, once it has been found.
#
# A critic in practice is never right everywhere. Give ours two entries instead of three, so that foot
# and stairs look alike and get one value, wrong for both. Of the lamp it could still know the truth.

# %%
alike, ignored = torch.tensor([0, 0, 1]), ENDINGS["truncated ignored"]
masks, leak = (learn(rollout, way, entry_of=alike)[1] for way in (compute_gae, ignored))
print(f"the lamp with two masks {masks:.2f}, with truncated ignored {leak:.2f}")

# %%
claim(
    "rollout.leak",
    "With foot and stairs alike, two masks give the lamp 10, and ignoring truncated gives it 9.0.",
    abs(masks - 10) < 1e-4 and abs(leak - 9.0) < 0.05,
    control=(
        "With a value for each height, ignoring truncated gives it less than 9.5, too.",
        learned["truncated ignored"][2] < 9.5,
    ),
)

# %% [markdown]
# The error at the *start* of an episode has leaked into the *end* of the one before. And where rewards are
# noisy, the luck of one episode becomes noise in the advantages of the one before.
#
# ## What a policy learns
#
# Look at the right half of the bars again. Climbing is worth 8.1, and the offer is 7.

# %%
too_little = sum(value < 6.9 for value in at_foot.values())
claim(
    "rollout.not_worth_it",
    "With five of the six mistakes climbing seems to be worth less than the offer.",
    too_little == 5 and at_foot["two masks"] > 8,
    control=("With all six it does.", too_little == 6),
)

# %% [markdown]
# So a keeper who learns with them should not climb. Try it, with the training loop of the next lesson:
# PPO, eight lighthouses, limit six. (`Parts` and the settings are explained in lesson 08. All that matters
# here is `advantages=way`: how ends are handled.)

# %%
config = PPOConfig(
    num_envs=8, num_steps=32, total_steps=8192, num_epochs=4, num_minibatches=2,
    learning_rate=1e-2, gamma=gamma, gae_lambda=0.8, hidden_sizes=(16,),
)  # fmt: skip


# %%
def train_keeper(way, seed):
    envs = GymEnvs(lighthouses([6] * 8))
    history = train(replace(config, seed=seed), envs=envs, parts=Parts(advantages=way))
    return history.networks.policy.evaluate(torch.zeros(1, 1), torch.tensor([0]))[0].exp().item()


# %% [markdown]
# `train_keeper` gives back the probability of climbing, at the foot, in the end. Two seeds each, with the
# right way and with two of the mistakes:

# %%
ways = ("two masks", "flags merged", "truncated ignored")
right, wrong, ignored = ([train_keeper(ENDINGS[name], seed) for seed in (1, 2)] for name in ways)
claim(
    "rollout.wrong_policy",
    "PPO with two masks climbs, with the flags merged it takes the offer, on both seeds.",
    min(right) > 0.75 and max(wrong) < 0.25,
    control=("With `truncated` ignored it takes the offer, too.", max(ignored) < 0.25),
)

# %% [markdown]
# The mistake that got away leaves the policy alone, too. The other one takes it away, with no error and no
# NaN. And what of the learning curve, the return per episode that everybody looks at?


# %%
def shown(action, limit):
    keeper = watch(action, limits=[limit], num_steps=limit)
    return keeper.episode_returns[keeper.ended][0]


claim(
    "rollout.curve",
    "The return shown is 4 for climbing and 7 for the offer, and what they are worth is 8.1 and 7.",
    shown(0, 6) == 4 and shown(1, 6) == 7 and abs(truth[0] - 8.1) < 1e-5,
    control=("With a limit of 12 steps climbing shows less as well.", shown(0, 12) < shown(1, 12)),
)

# %% [markdown]
# It takes the side of the mistake. It counts what was seen until the limit, and so it believes, like
# merged flags, that the world ends there. The limit is the cause: at 12 steps climbing shows 10.
#
# ## Which program is it?
#
# Six rows, the advantages that one of the six programs gave them, and the program is hidden. Its critic
# says 1 + the steps since the reset; row 0 is the fifth step of its episode. Press a step to change how it
# ended, and watch which advantages move: the question that helps most is the first of your three. Then
# guess. (Where no widget can run, you see a picture, and it shows the answer.)

# %%
ends = EndKinds(keep_as="rollout.which_way")
ends

# %% [markdown]
# Compute the right advantages of what you see, and those of the hidden program:

# %%
ways = {"gamma": ends.gamma, "gae_lambda": ends.gae_lambda}
for way, seen in ((compute_gae, ends.right), (ENDINGS[ends.way_name], ends.advantages)):
    computed = way(*ends.facts(), **ways)[:, 0]
    assert torch.allclose(computed, torch.tensor(seen, dtype=computed.dtype))
print("the widget and the package agree")

# %% [markdown]
# ## Exercises
#
# [Six exercises](../exercises/07_rollout.ipynb) wait for you: find the value of the state that a step
# reached, sum returns with a guess for the rest, sort out the rows that are no steps, predict eight
# numbers by hand, mend a bug that hides, and, for experts, add up what an episode has earned. Each check
# tells you which mistake it is. What passes is kept in `my_work/answers/`.
#
# ## Questions
#
# Five flag patterns. Each wrong option says why it is wrong.

# %%
quiz("rollout.truncated_row")

# %%
quiz("rollout.both_flags")

# %% [markdown]
# On rows without a flag:

# %%
quiz("rollout.last_row")

# %%
quiz("rollout.reset_row")

# %% [markdown]
# And one for the detective:

# %%
quiz("rollout.shaken")

# %% [markdown]
# ## The stair
#
# This lesson adds no stair to the staircase. It is the floor that all stairs stand on. So here is the
# floor with each of its holes: the lighthouse, 16 seeds for each way, run once and recorded.

# %%
study = recorded("episode_ends")
print(study["command"])
climbs = {name: [run["climbs"] for run in runs] for name, runs in study["runs"].items()}

# %%
show(
    figures.stair(climbs, study["env_steps"]),
    alt="The probability of climbing over the environment steps, one panel for each of seven ways, 16 "
    "seeds each. With two masks and with truncated ignored all seeds climb in the end. With the five "
    "other ways none does.",
)

# %% [markdown]
# At first all of them give up climbing: the 7 is there at once, and a fresh critic knows nothing of the
# lamp. Where a critic can find out what the lamp is worth, from the few who still climb, the policy turns
# round. (Thin lines are seeds, the thick one is their median.) A seed climbs if it does so with a
# probability above one half in the end.

# %%
counts = {name: sum(run[-1] > 0.5 for run in runs) for name, runs in climbs.items()}
quarter = study["env_steps"].index(2048)
early = {name: sum(run[quarter] > 0.5 for run in runs) for name, runs in climbs.items()}
claim(
    "rollout.stair",
    "All 16 seeds climb with two masks, and with five of the six mistakes none does.",
    counts["two masks"] == 16 and sorted(counts.values()) == [0] * 5 + [16] * 2,
    control=(
        "After a quarter of the run more seeds climb with two masks than with the flags merged.",
        early["two masks"] > early["flags merged"],
    ),
)

# %% [markdown]
# This holds here, where the limit is short, the lamp is worth more than one sees, and something else is on
# offer. On CartPole with its 500 steps you may never notice. You will on a task that goes on when you stop
# watching: a robot that walks, a server that runs, a conversation.
#
# ## What you have now
#
# - `terminated`: the task is over, the future is worth 0. `truncated`: we stopped watching, the future
#   counts what the critic says of the state that was reached.
# - `terminated` cuts the bootstrap, `ended` cuts the recursion. One mask cannot do both jobs.
# - Nothing after a reset may matter; the state that a limit hid must; so must the state behind the last row.
# - Know your autoreset mode. SAME_STEP hides the final observation in `final_obs`, NEXT_STEP adds a row
#   that is no step, DISABLED waits for you. There is one valid row for each step that was made.
# - A wrong end does not crash. It teaches the critic that the world is about to end, and the policy
#   believes it.
#
# You have all the parts: a policy that acts, ratios and a clip, a critic, GAE, and a rollout that you can
# trust. Next: [08 The training loop](08_training_loop.ipynb) puts them together.
