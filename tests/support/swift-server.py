# Runs OpenStack Swift with its S3 API in one process, on loopback, with all files in a folder. Prints the port when ready.
import os
import sys

import eventlet

eventlet.patcher.monkey_patch(all=False, socket=True, select=True, thread=True)

from eventlet import wsgi
from swift.common import utils
from swift.common.ring import RingBuilder
from swift.common.wsgi import loadapp

folder = sys.argv[1]


def write(name, text):
    path = os.path.join(folder, name)
    with open(path, 'w') as file:
        file.write(text)
    return path


write('swift.conf', '[swift-hash]\nswift_hash_path_suffix = posthorn\n')
utils.set_swift_dir(folder)
os.makedirs(os.path.join(folder, 'devices', 'disk'), exist_ok=True)

common = f'swift_dir = {folder}\ndevices = {folder}/devices\nmount_check = false\nlog_level = ERROR\n'
proxy = '''
[pipeline:main]
pipeline = catch_errors s3api tempauth slo proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_posthorn_test = secret .admin
[filter:slo]
use = egg:swift#slo
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
'''


class Cache:
    """Stands for memcached, which tempauth needs, in this one process."""

    def __init__(self):
        self.values = {}

    def get(self, key, **_):
        return self.values.get(key)

    def set(self, key, value, **_):
        self.values[key] = value

    def delete(self, key, **_):
        self.values.pop(key, None)

    def incr(self, key, delta=1, **_):
        self.values[key] = self.values.get(key, 0) + delta
        return self.values[key]


cache = Cache()


class Quiet:
    def write(self, text):
        pass

    def flush(self):
        pass


def serve(socket, name, text):
    app = loadapp(write(f'{name}.conf', f'[DEFAULT]\n{common}{text}'))

    def cached(environment, start):
        environment['swift.cache'] = cache
        return app(environment, start)

    eventlet.spawn(wsgi.server, socket, cached, log=Quiet(), log_output=False, socket_timeout=60)


storage = {name: eventlet.listen(('127.0.0.1', 0), backlog=512) for name in ('account', 'container', 'object')}
for name, socket in storage.items():
    builder = RingBuilder(2, 1, 0)
    port = socket.getsockname()[1]
    address = {'ip': '127.0.0.1', 'port': port, 'replication_ip': '127.0.0.1', 'replication_port': port}
    builder.add_dev({'id': 0, 'region': 1, 'zone': 1, 'device': 'disk', 'weight': 1, 'meta': '', **address})
    builder.rebalance()
    builder.get_ring().save(os.path.join(folder, f'{name}.ring.gz'))
for name, socket in storage.items():
    serve(socket, name, f'[app:main]\nuse = egg:swift#{name}\n')
front = eventlet.listen(('127.0.0.1', 0), backlog=512)
serve(front, 'proxy', proxy)
print(front.getsockname()[1], flush=True)
# The program ends with the one that started it.
eventlet.tpool.execute(sys.stdin.read)
