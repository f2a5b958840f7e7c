"""All claims, in the order of their numbers."""

from probes.verify.amqp10 import GROUP
from probes.verify.claims import (
    amqp10_consume,
    amqp10_publish,
    confirm_paths,
    confirm_rates,
    confirms,
    delivery,
    disturbed,
    loss,
    order,
    prefetch,
    prefetch_rates,
    prefetch_room,
    reliability,
    requeue,
    requeue_order,
    tx,
)
from probes.verify.verify_claim import VerifyClaim

_PARTS = (
    delivery,
    loss,
    requeue,
    requeue_order,
    prefetch,
    prefetch_room,
    prefetch_rates,
    confirms,
    confirm_paths,
    confirm_rates,
    tx,
    order,
    reliability,
    disturbed,
    amqp10_publish,
    amqp10_consume,
)

CLAIMS: tuple[VerifyClaim, ...] = tuple(
    sorted((claim for part in _PARTS for claim in part.CLAIMS), key=lambda claim: (claim.group == GROUP, claim.id))
)
