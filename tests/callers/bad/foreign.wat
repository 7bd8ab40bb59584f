;; A caller that wants from its host what is neither WASI nor the community layer.
(component
  (import "example:mail/outbox@1.0.0" (instance $outbox
    (export "send" (func (param "to" u64)))))
  (core func $send (canon lower (func $outbox "send")))
  (core module $code
    (import "outbox" "send" (func $send (param i64)))
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "run") (param i32 i32) (result i32)
      (call $send (i64.const 42))
      unreachable))
  (core instance $code (instantiate $code
    (with "outbox" (instance (export "send" (func $send))))))
  (func (export "run") (param "args" (list string)) (result (result string (error string)))
    (canon lift (core func $code "run")
      (memory (core memory $code "memory")) (realloc (core func $code "realloc")))))
