# Verdicts of pyspf and dkimpy. Input: {"zone", "failing", "mails": [{ip, helo, from, raw}]}. Output: a list of {spf, dkim, arc}.
import base64, json, sys
import dkim, spf

asked = json.load(sys.stdin)
zone, failing = asked["zone"], set(asked["failing"])


def records(name, kind):
    for _ in range(8):
        found = zone.get(name, {})
        if "CNAME" not in found:
            return found.get(kind, [])
        name = found["CNAME"].lower()
    return []


def lookup(name, kind, tcpfallback=True, timeout=30):
    name = name.lower().rstrip(".")
    if name in failing:
        raise spf.TempError("SERVFAIL")
    values = records(name, kind)
    if kind == "TXT":
        values = [[part.encode("latin1") for part in one] for one in values]
    if kind == "MX":
        values = [tuple(one) for one in values]
    if kind == "PTR":
        values = list(values)
    return [((name, kind), value) for value in values]


spf.DNSLookup = lookup


unanswered = []


def text(name, timeout=5):
    name = name.decode().lower().rstrip(".")
    if name in failing:
        unanswered.append(name)
        raise dkim.DnsTimeoutError("SERVFAIL")
    found = records(name, "TXT")
    return "".join(found[0]).encode("latin1") if found else None


def signature(raw, index):
    unanswered.clear()
    try:
        passes = dkim.DKIM(raw).verify(index, dnsfunc=text)
        # dkimpy returns False both for a bad signature and for an unanswered DNS question.
        return "pass" if passes else "temperror" if unanswered else "fail"
    except dkim.DKIMException as error:
        print(error, file=sys.stderr)
        return "permerror"
    except Exception as error:
        # dkimpy crashes on some malformed signatures.
        return "crash"


def chain(raw):
    try:
        return dkim.ARC(raw).verify(dnsfunc=text)[0].decode()
    except dkim.DKIMException:
        return "fail"
    except Exception:
        return "crash"


def judge(mail):
    raw = base64.b64decode(mail["raw"])
    count = raw.split(b"\r\n\r\n")[0].lower().count(b"\ndkim-signature:") + raw.lower().startswith(b"dkim-signature:")
    return {
        "spf": spf.check2(i=mail["ip"], s=mail["from"], h=mail["helo"], receiver="side.example")[0],
        "dkim": [signature(raw, index) for index in range(count)],
        "arc": chain(raw),
    }


print(json.dumps([judge(mail) for mail in asked["mails"]]))
