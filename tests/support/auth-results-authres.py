# Parses Authentication-Results with authres. Input: a JSON list of unfolded fields. Output: for each a list of
# [method, result, [[ptype, property, value], …]], or null if authres rejects the field.
import json, sys
import authres


def read(field):
    try:
        parsed = authres.AuthenticationResultsHeader.parse(field)
    except authres.AuthResError:
        return None
    return [[one.method, one.result, [[p.type, p.name, p.value] for p in one.properties]] for one in parsed.results]


print(json.dumps([read(field) for field in json.load(sys.stdin)]))
