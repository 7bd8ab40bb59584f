;; A caller that takes memory, page by page and writing to each, until it is refused.
(component
  (core module $code
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "run") (param i32 i32) (result i32)
      (loop
        (i64.store (i32.mul (i32.sub (memory.size) (i32.const 1)) (i32.const 65536)) (i64.const -1))
        (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
      unreachable))
  (core instance $code (instantiate $code))
  (func (export "run") (param "args" (list string)) (result (result string (error string)))
    (canon lift (core func $code "run")
      (memory (core memory $code "memory")) (realloc (core func $code "realloc")))))
