# Reads the mail of a report about TLS (RFC 8460) strictly: raw mail in, a line of JSON out. Fails if anything is amiss.
import datetime, email, email.policy, gzip, ipaddress, json, re, sys

MAX_BYTES = 1 << 20


def once(pairs):
    # JSON does not forbid a repeated name, but readers disagree on it.
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


def moment(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")


def read_policy(entry):
    failed = [(one["result-type"], one["failed-session-count"]) for one in entry.get("failure-details", [])]
    for one in entry.get("failure-details", []):
        for name in ("sending-mta-ip", "receiving-ip"):
            if name in one:
                ipaddress.ip_address(one[name])
    summary = entry["summary"]
    assert sum(count for _, count in failed) == summary["total-failure-session-count"], entry
    policy = entry["policy"]
    return {
        "type": policy["policy-type"],
        "domain": policy["policy-domain"],
        "lines": policy.get("policy-string", []),
        "successes": summary["total-successful-session-count"],
        "failures": failed,
    }


mail = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.SMTP)
assert mail.get_content_type() == "multipart/report", mail["Content-Type"]
assert mail["Content-Type"].params["report-type"] == "tlsrpt", mail["Content-Type"]
note, attached = mail.iter_parts()
assert note.get_content_type() == "text/plain", note["Content-Type"]
assert attached.get_content_type() == "application/tlsrpt+gzip", attached["Content-Type"]
subject = re.fullmatch(r"Report Domain: (\S+) Submitter: (\S+) Report-ID: <(\S+)>", str(mail["Subject"]))
assert subject.group(1) == mail["TLS-Report-Domain"], mail["Subject"]
assert subject.group(2) == mail["TLS-Report-Submitter"], mail["Subject"]
begin, end = re.fullmatch(
    r"([^!]+)!([^!]+)!(\d+)!(\d+)\.json\.gz", attached.get_filename()
).group(3, 4)
text = gzip.decompress(attached.get_payload(decode=True))
assert len(text) < MAX_BYTES
report = json.loads(text.decode("utf-8"), object_pairs_hook=once)
assert report["report-id"] == subject.group(3), report
times = [moment(report["date-range"][name]).timestamp() for name in ("start-datetime", "end-datetime")]
assert times == [int(begin), int(end)], (times, begin, end)
assert times[1] - times[0] == 86399 and times[0] % 86400 == 0, times
print(json.dumps({"contact": report["contact-info"], "policies": [read_policy(one) for one in report["policies"]]}))
