# Parses untrusted mail with Python's email package: a line of base64 in, a line of JSON out. Each field has value or fault.
import base64, email, email.policy, json, sys


def attempt(read):
    # The package raises exceptions of any kind on malformed mail. Such a field has no value.
    try:
        return {"value": read()}
    except Exception as fault:
        return {"fault": repr(fault)}


def mailboxes(message, name):
    field = message[name]
    if field is None:
        return []
    return [{"email": one.addr_spec, "name": one.display_name} for one in field.addresses]


def instant(message):
    field = message["Date"]
    return None if field is None or field.datetime is None else field.datetime.timestamp()


def text(message, name):
    return None if message[name] is None else str(message[name])


def leaves(part):
    # An enclosed message is one part, as for the other parsers.
    if not part.is_multipart():
        return [part]
    if part.get_content_maintype() == "message":
        return [part]
    return [leaf for child in part.iter_parts() for leaf in leaves(child)]


def is_text(part):
    return part.get_content_type() in ("text/plain", "text/html") and part.get_content_disposition() != "attachment"


def content(part):
    if part.is_multipart():
        inner = part.get_payload()
        return b"\r\n".join(one.as_bytes(policy=email.policy.compat32.clone(linesep="\r\n")) for one in inner)
    return part.get_payload(decode=True)


def attachment(part):
    return {
        "filename": part.get_filename(),
        "contentType": part.get_content_type(),
        "contentId": part["Content-ID"] and str(part["Content-ID"]),
        "disposition": part.get_content_disposition(),
        "content": base64.b64encode(content(part)).decode(),
    }


def read(raw):
    message = email.message_from_bytes(raw, policy=email.policy.default)
    parts = leaves(message)
    of_kind = lambda kind: [part.get_content() for part in parts if is_text(part) and part.get_content_type() == kind]
    return {
        "subject": attempt(lambda: text(message, "Subject")),
        "from": attempt(lambda: mailboxes(message, "From")),
        "to": attempt(lambda: mailboxes(message, "To")),
        "cc": attempt(lambda: mailboxes(message, "Cc")),
        "replyTo": attempt(lambda: mailboxes(message, "Reply-To")),
        "date": attempt(lambda: instant(message)),
        "messageId": attempt(lambda: text(message, "Message-ID")),
        "inReplyTo": attempt(lambda: text(message, "In-Reply-To")),
        "references": attempt(lambda: text(message, "References")),
        "text": attempt(lambda: of_kind("text/plain")),
        "html": attempt(lambda: of_kind("text/html")),
        "attachments": attempt(lambda: [attachment(part) for part in parts if not is_text(part)]),
    }


for line in sys.stdin:
    print(json.dumps(read(base64.b64decode(line))), flush=True)
