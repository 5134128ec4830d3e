# Parses messages with Python's email package: a line of base64 in, a line of JSON out.
import base64, email, email.policy, email.header, email.utils, json, sys


def decoded(value):
    if value is None:
        return None
    parts = email.header.decode_header(value)
    return "".join(part.decode(charset or "latin-1") if isinstance(part, bytes) else part for part, charset in parts)


def mailboxes(message, name):
    pairs = email.utils.getaddresses(message.get_all(name, []))
    return [{"email": address, "name": decoded(text) if text else ""} for text, address in pairs]


def filename(part):
    # get_filename() strips spaces at both ends.
    value = part.get_param("filename", None, "Content-Disposition")
    return email.utils.collapse_rfc2231_value(value) if isinstance(value, tuple) else value


def read(raw):
    message = email.message_from_bytes(raw, policy=email.policy.compat32)
    leaves = [part for part in message.walk() if not part.is_multipart()]
    texts = {part.get_content_type(): part for part in leaves if part.get("Content-Disposition") is None}
    return {
        "fields": [name for name in message.keys()],
        "subject": decoded(str(message["Subject"]).replace("\r\n", "").replace("\n", "")),
        "from": mailboxes(message, "From"),
        "to": mailboxes(message, "To"),
        "cc": mailboxes(message, "Cc"),
        "replyTo": mailboxes(message, "Reply-To"),
        "texts": {kind: part.get_payload(decode=True).decode("utf-8") for kind, part in texts.items()},
        "attachments": [
            {
                "filename": filename(part),
                "contentType": part.get_content_type(),
                "contentId": part.get("Content-ID"),
                "content": base64.b64encode(part.get_payload(decode=True)).decode(),
            }
            for part in leaves
            if part.get("Content-Disposition") is not None
        ],
        "defects": [repr(defect) for part in message.walk() for defect in part.defects],
    }


for line in sys.stdin:
    print(json.dumps(read(base64.b64decode(line))), flush=True)
