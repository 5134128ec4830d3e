// A library to preload: reads, writes, flushes and opens of chosen files fail, as on a broken disk. `faulty-io.ts` makes
// it, and switches faults on and off in a file that all processes map.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, READ = 4, OPEN = 8 };
enum { FAIL = 0, SHORT = 1, TORN = 2 };

/** One fault. `faulty-io.ts` writes the same layout: 256 bytes each. */
struct rule {
  /** The operations that it affects; 0 while the fault is off. */
  _Atomic uint32_t operations;
  /** Every call with this number fails. */
  uint32_t every;
  /** FAIL: nothing happens. SHORT: half is done. TORN: half is done and the call fails. */
  uint32_t kind;
  uint32_t error;
  /** The calls that matched, and those that failed. */
  _Atomic uint32_t calls;
  _Atomic uint32_t hits;
  /** The paths of the affected files contain this. */
  char part[232];
};

#define RULES 4
static struct rule *rules;

#define REAL(name)                                         \
  static __typeof__(&name) real;                           \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void map_rules(void) {
  const char *path = getenv("FAULTY_IO");
  if (!path) return;
  int saved = errno;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, RULES * sizeof(struct rule), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) abort();
  close(fd);
  rules = mapped;
  errno = saved;
}

/** Returns the rule by which this call fails; null if it succeeds. */
static struct rule *find_fault(int fd, uint32_t operation) {
  if (!rules) return NULL;
  char path[PATH_MAX];
  ssize_t length = 0;
  int saved = errno;
  for (struct rule *rule = rules; rule < rules + RULES; rule++) {
    if (!(atomic_load(&rule->operations) & operation)) continue;
    if (length == 0) {
      char link[32] = "/proc/self/fd/";
      char digits[12];
      int count = 0, rest = fd;
      do digits[count++] = (char)('0' + rest % 10); while ((rest /= 10) > 0);
      char *end = link + strlen(link);
      while (count > 0) *end++ = digits[--count];
      *end = 0;
      length = readlink(link, path, sizeof path - 1);
      errno = saved;
      if (length <= 0 || path[0] != '/') return NULL;
      path[length] = 0;
    }
    if (!strstr(path, rule->part)) continue;
    if (atomic_fetch_add(&rule->calls, 1) % rule->every != rule->every - 1) continue;
    atomic_fetch_add(&rule->hits, 1);
    return rule;
  }
  return NULL;
}

static int fail(struct rule *rule) {
  errno = (int)rule->error;
  return -1;
}

/** Runs a call on `size` bytes, or on half of them if a rule says so. */
#define ON_BYTES(operation, call)                                    \
  struct rule *rule = find_fault(fd, operation);                     \
  if (!rule) return call;                                            \
  if (rule->kind == FAIL || size < 2) return fail(rule);             \
  size /= 2;                                                         \
  ssize_t done = call;                                               \
  return rule->kind == TORN ? fail(rule) : done

ssize_t write(int fd, const void *bytes, size_t size) {
  REAL(write);
  ON_BYTES(WRITE, real(fd, bytes, size));
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
  REAL(pwrite);
  ON_BYTES(WRITE, real(fd, bytes, size, at));
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  REAL(pwrite64);
  ON_BYTES(WRITE, real(fd, bytes, size, at));
}

ssize_t read(int fd, void *bytes, size_t size) {
  REAL(read);
  ON_BYTES(READ, real(fd, bytes, size));
}

ssize_t pread(int fd, void *bytes, size_t size, off_t at) {
  REAL(pread);
  ON_BYTES(READ, real(fd, bytes, size, at));
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t at) {
  REAL(pread64);
  ON_BYTES(READ, real(fd, bytes, size, at));
}

/** A call on several buffers is done for the first half of the first one. */
#define ON_BUFFERS(operation, whole, half)                           \
  struct rule *rule = find_fault(fd, operation);                     \
  if (!rule) return whole;                                           \
  size_t size = buffers[0].iov_len;                                  \
  if (rule->kind == FAIL || size < 2) return fail(rule);             \
  size /= 2;                                                         \
  ssize_t done = half;                                               \
  return rule->kind == TORN ? fail(rule) : done

ssize_t writev(int fd, const struct iovec *buffers, int count) {
  REAL(writev);
  struct iovec first = buffers[0];
  ON_BUFFERS(WRITE, real(fd, buffers, count), (first.iov_len = size, real(fd, &first, 1)));
}

ssize_t pwritev(int fd, const struct iovec *buffers, int count, off_t at) {
  REAL(pwritev);
  struct iovec first = buffers[0];
  ON_BUFFERS(WRITE, real(fd, buffers, count, at), (first.iov_len = size, real(fd, &first, 1, at)));
}

ssize_t readv(int fd, const struct iovec *buffers, int count) {
  REAL(readv);
  struct iovec first = buffers[0];
  ON_BUFFERS(READ, real(fd, buffers, count), (first.iov_len = size, real(fd, &first, 1)));
}

ssize_t preadv(int fd, const struct iovec *buffers, int count, off_t at) {
  REAL(preadv);
  struct iovec first = buffers[0];
  ON_BUFFERS(READ, real(fd, buffers, count, at), (first.iov_len = size, real(fd, &first, 1, at)));
}

#define SYNCS(name)                                      \
  int name(int fd) {                                     \
    REAL(name);                                          \
    struct rule *rule = find_fault(fd, SYNC);            \
    return rule ? fail(rule) : real(fd);                 \
  }

SYNCS(fsync)
SYNCS(fdatasync)

/** The file is opened first, because only its descriptor has its whole path. */
#define OPENS(name)                                                  \
  int name(const char *path, int flags, ...) {                       \
    REAL(name);                                                      \
    mode_t mode = 0;                                                 \
    if (flags & (O_CREAT | O_TMPFILE)) {                             \
      va_list words;                                                 \
      va_start(words, flags);                                        \
      mode = va_arg(words, mode_t);                                  \
      va_end(words);                                                 \
    }                                                                \
    int fd = real(path, flags, mode);                                \
    struct rule *rule = fd < 0 ? NULL : find_fault(fd, OPEN);        \
    if (!rule) return fd;                                            \
    close(fd);                                                       \
    return fail(rule);                                               \
  }

OPENS(open)
OPENS(open64)
