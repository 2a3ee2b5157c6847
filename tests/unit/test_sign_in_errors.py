"""What goes wrong with a sign-in, and whether to try it again can help."""

from clickclock.foundation.errors import Transient, Unauthenticated
from clickclock.scheduler.identity_provider import ProviderUnreachable, SignInRefused


def test_a_provider_that_does_not_answer_is_tried_again_and_a_refused_sign_in_is_begun_anew() -> None:
    assert isinstance(ProviderUnreachable(), Transient)
    assert isinstance(SignInRefused(), Unauthenticated)
