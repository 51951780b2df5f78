"""The classic tasks of control as batched `Task`s: the formulas of gymnasium, row by row.

Each agrees with gymnasium's environment of the same name from the same state, to 10⁻¹² in float64
(`tests/test_envs_classic.py`). The order of operations is theirs, since another would round
otherwise. Sources of the dynamics: Barto, Sutton and Anderson (1983) for the cart-pole; Sutton
(1996) and Sutton and Barto (2018) for the acrobot; Moore (1990) for the mountain car.
"""

from math import inf, pi
from typing import Any

import numpy as np
import torch
from gymnasium import Space
from gymnasium.spaces import Box, Discrete
from jaxtyping import Bool, Float, Int, Shaped
from torch import Generator, Tensor

from ppo_lessons.envs.batched import State, uniform

Advanced = tuple[State, Float[Tensor, " N"], Bool[Tensor, " N"]]


def box(*high: float, low: tuple[float, ...] | None = None) -> Space[Any]:
    """Make the space of observations up to `high`, and from `low` or `-high` on."""
    upper = np.array(high, dtype=np.float32)
    return Box(-upper if low is None else np.array(low, dtype=np.float32), upper)


class CartPole:
    """A pole on a cart: push left (0) or right (1), earn 1 for each step that it stands.

    Args:
        time_limit: steps (500 in CartPole-v1).
    """

    GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
    MOST_PLACE, MOST_ANGLE = 2.4, 12 * 2 * pi / 360  # metres from the centre, radians
    action_space: Space[Any]

    def __init__(self, time_limit: int = 500):
        self.observation_space = box(2 * self.MOST_PLACE, inf, 2 * self.MOST_ANGLE, inf)
        self.action_space = Discrete(2)
        self.time_limit = time_limit

    def start(self, num_envs: int, *, generator: Generator, dtype: torch.dtype) -> State:
        """Draw place, speed, angle and turning, each within 0.05 of 0."""
        drawn = uniform(num_envs, -0.05, 0.05, size=4, generator=generator, dtype=dtype)
        return dict(zip(("place", "speed", "angle", "turning"), drawn, strict=True))

    def advance(
        self, state: State, actions: Int[Tensor, " N"], *, generator: Generator
    ) -> Advanced:
        """Push for a fiftieth of a second."""
        total, pole = self.CART + self.POLE, self.POLE * self.HALF_LENGTH
        angle, turning = state["angle"], state["turning"]
        force = (2 * actions - 1) * self.FORCE
        cosine, sine = angle.cos(), angle.sin()
        pull = (force + pole * turning.square() * sine) / total
        turning_change = (self.GRAVITY * sine - cosine * pull) / (
            self.HALF_LENGTH * (4 / 3 - self.POLE * cosine.square() / total)
        )
        speed_change = pull - pole * turning_change * cosine / total
        reached = {
            "place": state["place"] + self.SECONDS * state["speed"],
            "speed": state["speed"] + self.SECONDS * speed_change,
            "angle": angle + self.SECONDS * turning,
            "turning": turning + self.SECONDS * turning_change,
        }
        fallen = reached["angle"].abs() > self.MOST_ANGLE
        terminated = fallen | (reached["place"].abs() > self.MOST_PLACE)
        return reached, torch.ones_like(angle), terminated

    def observe(self, state: State) -> Float[Tensor, "N 4"]:
        """All of the state."""
        return torch.stack(list(state.values()), dim=-1)


class Pendulum:
    """A pendulum with a motor too weak to lift it at once: swing it up and hold it there.

    Actions are torques, cut to ±2. An episode never terminates.

    Args:
        time_limit: steps (200 in Pendulum-v1).
    """

    GRAVITY, MASS, LENGTH, SECONDS = 10.0, 1.0, 1.0, 0.05
    MOST_TURNING, MOST_TORQUE = 8.0, 2.0  # radians per second; newton metres
    action_space: Space[Any]

    def __init__(self, time_limit: int = 200):
        self.observation_space = box(1.0, 1.0, self.MOST_TURNING)
        self.action_space = Box(-self.MOST_TORQUE, self.MOST_TORQUE, (1,))
        self.time_limit = time_limit

    def start(self, num_envs: int, *, generator: Generator, dtype: torch.dtype) -> State:
        """Draw any angle, and a turning within 1 of 0."""
        angle, turning = uniform(num_envs, -1, 1, size=2, generator=generator, dtype=dtype)
        return {"angle": pi * angle, "turning": turning}

    def advance(
        self, state: State, actions: Float[Tensor, "N 1"], *, generator: Generator
    ) -> Advanced:
        """Apply a torque for a twentieth of a second."""
        angle, turning = state["angle"], state["turning"]
        torque = actions[:, 0].clamp(-self.MOST_TORQUE, self.MOST_TORQUE)
        from_top = (angle + pi).remainder(2 * pi) - pi
        cost = from_top.square() + 0.1 * turning.square() + 0.001 * torque.square()
        gravity = 3 * self.GRAVITY / (2 * self.LENGTH) * angle.sin()
        motor = 3 / (self.MASS * self.LENGTH**2) * torque
        turned = turning + (gravity + motor) * self.SECONDS
        turned = turned.clamp(-self.MOST_TURNING, self.MOST_TURNING)
        reached = {"angle": angle + turned * self.SECONDS, "turning": turned}
        return reached, -cost, torch.zeros_like(angle, dtype=torch.bool)

    def observe(self, state: State) -> Float[Tensor, "N 3"]:
        """Cosine and sine of the angle, and the turning."""
        angle = state["angle"]
        return torch.stack([angle.cos(), angle.sin(), state["turning"]], dim=-1)


class Acrobot:
    """Two links that hang from a bar, and a motor between them: swing the tip above the bar.

    Actions 0, 1, 2 are torques −1, 0, 1; each step costs 1 until the tip is high enough.

    Args:
        time_limit: steps (500 in Acrobot-v1).
    """

    GRAVITY, SECONDS = 9.8, 0.2
    MASS = LENGTH = INERTIA = 1.0
    CENTRE = 0.5  # metres from a link's joint to its centre of mass
    MOST_TURNING = 4 * pi, 9 * pi  # radians per second
    action_space: Space[Any]

    def __init__(self, time_limit: int = 500):
        self.observation_space = box(1.0, 1.0, 1.0, 1.0, *self.MOST_TURNING)
        self.action_space = Discrete(3)
        self.time_limit = time_limit

    def start(self, num_envs: int, *, generator: Generator, dtype: torch.dtype) -> State:
        """Draw both angles and both turnings, each within 0.1 of 0."""
        drawn = uniform(num_envs, -0.1, 0.1, size=4, generator=generator, dtype=dtype)
        return dict(zip(("first", "second", "turning_1", "turning_2"), drawn, strict=True))

    def advance(
        self, state: State, actions: Int[Tensor, " N"], *, generator: Generator
    ) -> Advanced:
        """Apply a torque for a fifth of a second: one step of Runge and Kutta's fourth order."""
        now = torch.stack(list(state.values()))
        torque = (actions - 1).to(now.dtype)
        half = self.SECONDS / 2
        first = self.change(now, torque)
        second = self.change(now + half * first, torque)
        third = self.change(now + half * second, torque)
        fourth = self.change(now + self.SECONDS * third, torque)
        then = now + self.SECONDS / 6 * (first + 2 * second + 2 * third + fourth)
        reached = {
            "first": wrapped(then[0]),
            "second": wrapped(then[1]),
            "turning_1": then[2].clamp(-self.MOST_TURNING[0], self.MOST_TURNING[0]),
            "turning_2": then[3].clamp(-self.MOST_TURNING[1], self.MOST_TURNING[1]),
        }
        height = -reached["first"].cos() - (reached["second"] + reached["first"]).cos()
        terminated = height > 1
        return reached, terminated.to(now.dtype) - 1, terminated

    def change(
        self, now: Float[Tensor, "4 N"], torque: Float[Tensor, " N"]
    ) -> Float[Tensor, "4 N"]:
        """Give the time derivative of angles and turnings."""
        mass, length, centre, inertia = self.MASS, self.LENGTH, self.CENTRE, self.INERTIA
        first, second, turning_1, turning_2 = now
        cosine, sine = second.cos(), second.sin()
        reach = length**2 + centre**2 + 2 * length * centre * cosine
        d1 = mass * centre**2 + mass * reach + inertia + inertia
        d2 = mass * (centre**2 + length * centre * cosine) + inertia
        phi2 = mass * centre * self.GRAVITY * (first + second - pi / 2).cos()
        phi1 = (
            -mass * length * centre * turning_2.square() * sine
            - 2 * mass * length * centre * turning_2 * turning_1 * sine
            + (mass * centre + mass * length) * self.GRAVITY * (first - pi / 2).cos()
            + phi2
        )
        swing = mass * length * centre * turning_1.square() * sine
        change_2 = (torque + d2 / d1 * phi1 - swing - phi2) / (
            mass * centre**2 + inertia - d2.square() / d1
        )
        change_1 = -(d2 * change_2 + phi1) / d1
        return torch.stack([turning_1, turning_2, change_1, change_2])

    def observe(self, state: State) -> Float[Tensor, "N 6"]:
        """Cosine and sine of both angles, and both turnings."""
        first, second = state["first"], state["second"]
        seen = [first.cos(), first.sin(), second.cos(), second.sin()]
        return torch.stack([*seen, state["turning_1"], state["turning_2"]], dim=-1)


def wrapped(angle: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
    """Bring an angle between −π and π; one step turns less than three times around."""
    for _ in range(3):
        angle = torch.where(angle > pi, angle - 2 * pi, angle)
        angle = torch.where(angle < -pi, angle + 2 * pi, angle)
    return angle


class MountainCar:
    """A car in a valley whose motor is too weak for the slope: it must swing up, 1 per step.

    Actions 0, 1, 2 push left, not at all, right. Nothing is earned before the goal: plain PPO does
    not find it.

    Args:
        time_limit: steps (200 in MountainCar-v0).
    """

    LEFT, RIGHT, GOAL = -1.2, 0.6, 0.5
    MOST_SPEED, FORCE, GRAVITY = 0.07, 0.001, 0.0025
    action_space: Space[Any]

    def __init__(self, time_limit: int = 200):
        self.observation_space = box(self.RIGHT, self.MOST_SPEED, low=(self.LEFT, -self.MOST_SPEED))
        self.action_space = Discrete(3)
        self.time_limit = time_limit

    def start(self, num_envs: int, *, generator: Generator, dtype: torch.dtype) -> State:
        """Draw a place near the bottom, between −0.6 and −0.4, and stand still."""
        (place,) = uniform(num_envs, -0.6, -0.4, size=1, generator=generator, dtype=dtype)
        return {"place": place, "speed": torch.zeros_like(place)}

    def advance(
        self, state: State, actions: Shaped[Tensor, " N *action"], *, generator: Generator
    ) -> Advanced:
        """Push once."""
        place = state["place"]
        actions = actions.to(place.dtype)
        speed = state["speed"] + self.push(actions) - self.GRAVITY * (3 * place).cos()
        speed = speed.clamp(-self.MOST_SPEED, self.MOST_SPEED)
        place = (place + speed).clamp(self.LEFT, self.RIGHT)
        speed = torch.where((place == torch.full_like(place, self.LEFT)) & (speed < 0), 0, speed)
        terminated = (place >= self.GOAL) & (speed >= 0)
        reached = {"place": place, "speed": speed}
        return reached, self.earned(actions, terminated), terminated

    def push(self, actions: Shaped[Tensor, " N *action"]) -> Float[Tensor, " N"]:
        """Give the change of speed by the motor."""
        return (actions - 1) * self.FORCE

    def earned(
        self, actions: Shaped[Tensor, " N *action"], terminated: Bool[Tensor, " N"]
    ) -> Float[Tensor, " N"]:
        """Give −1 for every step."""
        return torch.full_like(actions, -1)

    def observe(self, state: State) -> Float[Tensor, "N 2"]:
        """Place and speed."""
        return torch.stack([state["place"], state["speed"]], dim=-1)


class MountainCarContinuous(MountainCar):
    """The mountain car with a throttle: 100 at the goal, and 0.1 times its square as a cost.

    Args:
        time_limit: steps (999 in MountainCarContinuous-v0).
    """

    GOAL, FORCE = 0.45, 0.0015
    action_space: Space[Any]

    def __init__(self, time_limit: int = 999):
        super().__init__(time_limit)
        self.action_space = Box(-1.0, 1.0, (1,))

    def push(self, actions: Float[Tensor, "N 1"]) -> Float[Tensor, " N"]:
        """Give the change of speed by the motor, which is cut to ±1."""
        return actions[:, 0].clamp(-1, 1) * self.FORCE

    def earned(
        self, actions: Float[Tensor, "N 1"], terminated: Bool[Tensor, " N"]
    ) -> Float[Tensor, " N"]:
        """Give 100 at the goal, less the cost of the throttle, which is not cut."""
        return 100.0 * terminated - 0.1 * actions[:, 0].square()
