# Verifies with dkimpy. Input: {"records": {name: text}, "messages": [base64]}. Output: a list of booleans.
import base64, json, sys
import dkim


def verifies(raw, records):
    verifier = dkim.DKIM(raw)
    signature_count = sum(name.lower() == b"dkim-signature" for name, _ in verifier.headers)
    answer = lambda name, timeout=5: records[name.decode().rstrip(".")].encode()
    return all(verifier.verify(index, dnsfunc=answer) for index in range(signature_count))


def judge(raw, records):
    try:
        return verifies(raw, records)
    except dkim.DKIMException as error:
        print(error, file=sys.stderr)
        return False


asked = json.load(sys.stdin)
print(json.dumps([judge(base64.b64decode(one), asked["records"]) for one in asked["messages"]]))
