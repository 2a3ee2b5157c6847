"""The part of the client about alarms: alarms, their targets, and silences.

Never tells anybody itself. Invariant: a method returns the body of the answer as the reference shows it.

>>> with Client() as client:                                                          # doctest: +SKIP
...     open_now = client.list_alarms(isOpen=True)["alarms"]
"""

import time

from clickclock.client.connection import Connection, Payload, given

PAUSE_S = 0.1


class Alarming:
    """What a client can do with alarms, silences, notifications and applications' defaults."""

    _connection: Connection

    def list_alarms(self, **filters: object) -> Payload:
        """Alarms, newest first; with `isOpen=True` those that are open."""
        return self._connection.call("GET", "alarm", query=filters)

    def acknowledge_alarm(self, alarm_id: str, by: str, note: str | None = None) -> Payload:
        """Take an alarm on."""
        return self._connection.call("PUT", "alarm", {"alarmId": alarm_id, "acknowledgedBy": by, "note": note})

    def list_silences(self) -> Payload:
        """Silences that hold."""
        return self._connection.call("GET", "silence")

    def silence(self, seconds: float, by: str, **scope: object) -> Payload:
        """Tell nobody for a while: of `application`, perhaps its `jobName`, or `groupName`; with a `note`."""
        return self._connection.call("PUT", "silence", {"seconds": seconds, "silencedBy": by, **given(scope)})

    def end_silence(self, **scope: object) -> Payload:
        """Tell again."""
        return self._connection.call("DELETE", "silence", query=scope)

    def list_notifications(self, **filters: object) -> Payload:
        """Notifications that were sent, or could not be sent (`state="dead"`), newest first."""
        return self._connection.call("GET", "notification", query=filters)

    def retry_notification(self, notification_id: str) -> Payload:
        """Try to tell it again."""
        return self._connection.call("PUT", "notification", {"notificationId": notification_id})

    def test_target(self, target: str, *, wait_s: float = 0.0) -> Payload:
        """Send a test to a target; wait at most `wait_s` until it arrived, or could not."""
        payload = self._connection.call("POST", "notification", {"target": target})
        until_s = time.monotonic() + wait_s
        told = payload["notification"]
        while told["state"] == "pending" and not told["lastError"] and time.monotonic() < until_s:
            time.sleep(PAUSE_S)
            told = self.list_notifications(notificationId=told["notificationId"])["notifications"][0]
        return {**payload, "notification": told}

    def list_applications(self, **filters: object) -> Payload:
        """Applications' defaults."""
        return self._connection.call("GET", "application", query=filters)

    def put_application(self, application: str, **fields: object) -> Payload:
        """Set an application's defaults (`notifications`)."""
        return self._connection.call("PUT", "application", {"application": application, **given(fields)})

    def delete_application(self, application: str) -> Payload:
        """Delete an application's defaults."""
        return self._connection.call("DELETE", "application", query={"application": application})
