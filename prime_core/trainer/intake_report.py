"""What the intake says about a receipt: a line of the log, metrics, and the observers' hook.

Called once a receipt, after it was written.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from prime_core.store.records import Receipt
from prime_core.trainer.intake_judge import Judgement, has_equal_rewards, has_equal_scores

if TYPE_CHECKING:
    from prime_core.trainer.intake import IntakeTools

logger = logging.getLogger("prime_core.intake")


def report(tools: IntakeTools, receipt: Receipt, judgement: Judgement, queue: int) -> None:
    """Tell log, metrics and observers about a receipt.

    Args:
        queue: groups with signal that wait for an open step.
    """
    if receipt.decision != "accepted":
        logger.warning(
            "step %d: submission %d of %s is %s: %s",
            receipt.step,
            receipt.n,
            receipt.node,
            receipt.decision,
            receipt.reason,
        )
        tools.log(receipt.step, {f"intake/{receipt.decision}_submissions": 1})
        return
    counts = {f"intake/{group.status}_groups": 0 for group in receipt.groups}
    for group in receipt.groups:
        counts[f"intake/{group.status}_groups"] += 1
    tools.log(
        receipt.step,
        {
            "intake/groups": len(receipt.groups),
            **counts,
            "intake/equal_reward_groups": sum(map(has_equal_rewards, judgement.finished)),
            "intake/equal_score_groups": sum(map(has_equal_scores, judgement.finished)),
            "intake/queue": queue,
        },
    )
    for finished in judgement.finished:
        tools.notify("prime_group_finished", {"group": finished})
