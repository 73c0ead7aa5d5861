"""What can go wrong, by what helps (docs/rest.md, "Errors").

Each error has a code, a message, a cause, a remediation, and whether the same call may succeed
later. Six classes say what kind of reaction helps; four narrower ones are below them:

    PolicyDeniedError     the operator's rules forbid it: ask a person, or do without
    ValidationError       the request is wrong, or does not fit what is there: change it
      NotFoundError         there is no such sandbox, file, template, snapshot
      ConflictError         something else is using it, or the name is taken
    TimedOutError         its time was over: give it more, or do less
    GuestError            what ran in the sandbox failed, or met one of its limits
      CommandError          a command that was to be checked did not end with 0
    TransportError        the hub, its host or the way to it failed; the request may be right
      LimitError            the hub has no room, or takes no more requests now
    CleanupError          it is done, but the sandbox is not as asked for
"""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional, Type

_LIMITS = ('quota_exceeded', 'rate_limited', 'too_many_streams')
_CONFLICTS = ('conflict', 'already_answered')


class HoltError(Exception):
    """The base of all errors of this package."""

    failure = 'transport_failed'
    remedy = 'Try again; if it fails again, tell the operator of the hub what the cause says.'

    def __init__(self,
                 cause: str,
                 *,
                 code: str = '',
                 message: str = '',
                 remediation: str = '',
                 retryable: bool = False,
                 status: Optional[int] = None,
                 audit_id: Optional[str] = None,
                 pointer: Optional[str] = None,
                 context: Optional[Mapping[str, Any]] = None,
                 result: Any = None) -> None:
        #: For programs; never changes its meaning.
        self.code = code or self.failure
        #: What happened this time.
        self.cause = cause
        #: What kind of failure it is.
        self.message = message or cause
        #: What can be done.
        self.remediation = remediation or self.remedy
        #: The same call may succeed later, unchanged.
        self.retryable = retryable
        #: Status of the hub's answer; None where there was none.
        self.status = status
        #: Names the record of the call in the hub's audit log; None where it never became a call.
        self.audit_id = audit_id
        #: JSON pointer to the value of the request that is at fault, if it is one.
        self.pointer = pointer
        #: What it is about: sandbox, path, dimension, …
        self.context: Dict[str, Any] = dict(context or {})
        #: What there is of a result all the same: of a command that timed out, say.
        self.result = result
        super().__init__(f'{self.code}: {cause}')

    def to_dict(self) -> Dict[str, Any]:
        """What to tell a model: JSON without any secret."""
        return {
            'failure': self.failure,
            'code': self.code,
            'cause': self.cause,
            'remediation': self.remediation,
            'retryable': self.retryable,
            'audit_id': self.audit_id
        }


class PolicyDeniedError(HoltError):
    """The operator's rules forbid it, or the token is not good."""

    failure = 'policy_denied'
    remedy = 'Ask a person to change the policy, or do without.'


class ValidationError(HoltError):
    """The request is wrong, or does not fit what is there."""

    failure = 'validation_failed'
    remedy = 'Correct what the cause names.'


class NotFoundError(ValidationError):
    """There is no such sandbox, file, template, snapshot or exec."""


class ConflictError(ValidationError):
    """Something else is using it, it is paused, or the name is taken."""


class TimedOutError(HoltError):
    """Its time was over. Of a checked command `result` has what it printed."""

    failure = 'timeout'
    remedy = 'Give it more time, or do less in one call.'


class GuestError(HoltError):
    """What ran in the sandbox failed, or met one of its limits (`context["dimension"]`)."""

    failure = 'guest_failed'
    remedy = 'Look at what the command printed and at the limits of the sandbox.'


class CommandError(GuestError):
    """A command that was to be checked did not end with 0; `result` has all of it."""


class TransportError(HoltError):
    """The hub can't be reached, went away, or answered what it should not."""


class LimitError(TransportError):
    """The hub has no room for it, or takes no more requests now."""


class CleanupError(HoltError):
    """It is done, but the sandbox is not as asked for; `context["sandbox"]` names it."""

    failure = 'cleanup_failed'
    remedy = 'End the sandbox by its id.'


_CLASSES: Dict[str, Type[HoltError]] = {
    c.failure: c
    for c in (PolicyDeniedError, ValidationError, TimedOutError, GuestError, TransportError,
              CleanupError)
}


def error_class(failure: str, code: str) -> Type[HoltError]:
    """The class of a failure that the hub tells."""
    found = _CLASSES.get(failure, TransportError)
    if found is ValidationError and code == 'not_found':
        return NotFoundError
    if found is ValidationError and code in _CONFLICTS:
        return ConflictError
    if found is TransportError and code in _LIMITS:
        return LimitError
    return found


def error_of(failure: str, code: str, cause: str, **more: Any) -> HoltError:
    """An error of the right class."""
    return error_class(failure, code)(cause, code=code, **more)


def error_of_answer(status: int, body: bytes, audit_id: Optional[str]) -> HoltError:
    """The error that an answer with another status than 200 is."""
    try:
        document = json.loads(body)
        error = document['error']
        return error_of(str(error['failure']),
                        str(error['code']),
                        str(error['cause']),
                        message=str(error.get('message', '')),
                        remediation=str(error.get('remediation', '')),
                        retryable=error.get('retryable') is True,
                        status=status,
                        audit_id=audit_id,
                        pointer=error.get('pointer'),
                        context=error.get('context'),
                        result=document.get('result'))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return TransportError(f'the answer has status {status} and is none of a Holt hub',
                              code='bad_answer',
                              status=status,
                              audit_id=audit_id,
                              remediation='Look whether the base URL is that of a Holt hub.')
