"""Uses the Python client against the real service: `watch` with asyncio, `whole` blocking. Prints lines of JSON."""

import asyncio
import io
import json
import os
import sys

from posthorn import AsyncPosthorn, Posthorn, verify_webhook

KEY = os.environ["POSTHORN_KEY"]


def report(**members):
    print(json.dumps(members), flush=True)


async def watch(base_url, inbox_id):
    """Reports suppressions and messages, and sends a message for each line of the input."""
    async with AsyncPosthorn(base_url, KEY) as posthorn:
        inbox = posthorn.inbox(inbox_id)
        address = (await posthorn.inboxes.get(inbox_id))["address"]

        async def watch_events():
            async for event in posthorn.events.watch():
                if event["type"] == "suppression.created":
                    report(suppressed=event["data"]["suppression"]["email"])

        async def watch_messages():
            async for message in inbox.messages.watch():
                report(received=message["subject"])

        async def send_lines():
            while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
                await inbox.messages.send(to=[{"email": address}], subject=line, text="Hello")
                report(sent=line)

        watching = [asyncio.create_task(one()) for one in (watch_events, watch_messages)]
        await send_lines()
        for task in watching:
            task.cancel()


def whole(base_url, relay_url, webhook_url):
    """Sends over the relay, which loses the first answer, and reads back all that comes of it."""
    with Posthorn(base_url, KEY) as posthorn, Posthorn(relay_url, KEY) as far:
        endpoint = posthorn.webhooks.create(url=webhook_url, event_types=["message.bounced"])
        ada = posthorn.inboxes.create(local_part="ada")
        terms = {"filename": "terms.txt", "contentType": "text/plain", "content": io.BytesIO(b"Terms.")}
        to = [{"email": ada["address"]}]
        sent = far.inbox(ada).messages.send(to=to, subject="Once", text="Hello", attachments=[terms])
        received = posthorn.inbox(ada).messages.wait()
        [attachment] = received["attachments"]
        with posthorn.messages.attachment(received["id"], attachment["id"], wait=30) as download:
            content = download.read(3) + download.read()
        with posthorn.messages.source(received["id"]) as source:
            lines = b"".join(source).split(b"\r\n")
        exported = [message["id"] for message in posthorn.inboxes.export(ada["id"], limit=1)]
        posthorn.webhooks.test(endpoint["id"])
        report(
            replayed=sent["replayed"],
            download=[download.filename, download.size, content.decode()],
            has_subject=b"Subject: Once" in lines,
            is_exported=exported == [sent["message"]["id"], received["id"]],
        )
        call = json.loads(sys.stdin.readline())
        event = verify_webhook(endpoint["secret"], call["body"], call["headers"])
        report(verified=event["type"])


if sys.argv[1] == "watch":
    asyncio.run(watch(*sys.argv[2:]))
else:
    whole(*sys.argv[2:])
