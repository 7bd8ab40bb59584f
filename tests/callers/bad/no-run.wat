;; A caller whose entry point has another name.
(component
  (core module $code
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "run") (param i32 i32) (result i32)
      (i32.store8 (i32.const 0) (i32.const 0))
      (i32.store (i32.const 4) (i32.const 0)) (i32.store (i32.const 8) (i32.const 0))
      (i32.const 0)))
  (core instance $code (instantiate $code))
  (func (export "walk") (param "args" (list string)) (result (result string (error string)))
    (canon lift (core func $code "run")
      (memory (core memory $code "memory")) (realloc (core func $code "realloc")))))
