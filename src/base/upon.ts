// Goes on with what is known at once, and waits only for what is not.

/** `next` of the value. An `await` of what was known costs every request a turn, and its garbage. */
export function upon<Value, Result>(
  value: Value | Promise<Value>,
  next: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(next) : next(value)
}
