"""`python -m ppo_lessons.gpu_run`, and under torchrun `-m ppo_lessons.gpu_run`."""

from ppo_lessons.gpu_run.command import main

if __name__ == "__main__":
    raise SystemExit(main())
