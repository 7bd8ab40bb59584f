;; A caller that loops for ever.
(component
  (core module $code
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "run") (param i32 i32) (result i32)
      (loop (br 0)) unreachable))
  (core instance $code (instantiate $code))
  (func (export "run") (param "args" (list string)) (result (result string (error string)))
    (canon lift (core func $code "run")
      (memory (core memory $code "memory")) (realloc (core func $code "realloc")))))
