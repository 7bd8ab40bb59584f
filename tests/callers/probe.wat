;; A caller that makes one call for user 42 and tells how it ended. The number of its
;; arguments says which call: 1 status, 2 leave, 3 rejoin, 4 history, 5 signal, 6 a signal
;; whose kind is empty. It returns ok("") if the call succeeded, else err with the number
;; of the error's case as a digit, then its text.
(module
  (import "tidegate:community/community-layer@0.1.0" "status" (func $status (param i64 i32)))
  (import "tidegate:community/community-layer@0.1.0" "leave" (func $leave (param i64 i32)))
  (import "tidegate:community/community-layer@0.1.0" "rejoin" (func $rejoin (param i64 i32)))
  (import "tidegate:community/community-layer@0.1.0" "history" (func $history (param i64 i32)))
  (import "tidegate:community/community-layer@0.1.0" "signal"
    (func $signal (param i64 i64 i32 i32 f64 i32)))
  (memory (export "memory") 16)
  (data (i32.const 256) "view")
  (global $free (mut i32) (i32.const 4096))

  ;; What is taken is never given back, and there is a byte in front of it for the digit.
  (func (export "cabi_realloc") (param i32 i32 i32) (param $bytes i32) (result i32)
    (local $place i32)
    (local.set $place
      (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -8)))
    (global.set $free (i32.add (local.get $place) (local.get $bytes)))
    (local.get $place))

  ;; The result of a call is at 0, and an error, if it is one, at $error. That of `run` is
  ;; at 128.
  (func $tell (param $error i32) (result i32)
    (local $text i32)
    (i64.store (i32.const 128) (i64.const 0))
    (i32.store (i32.const 136) (i32.const 0))
    (if (i32.load8_u (i32.const 0))
      (then
        (local.set $text (i32.sub (i32.load offset=4 (local.get $error)) (i32.const 1)))
        (i32.store8 (local.get $text)
          (i32.add (i32.const 48) (i32.load8_u (local.get $error))))
        (i32.store8 (i32.const 128) (i32.const 1))
        (i32.store (i32.const 132) (local.get $text))
        (i32.store (i32.const 136)
          (i32.add (i32.const 1) (i32.load offset=8 (local.get $error))))))
    (i32.const 128))

  (func (export "run") (param $args i32) (param $count i32) (result i32)
    (if (i32.eq (local.get $count) (i32.const 1))
      (then (call $status (i64.const 42) (i32.const 0)) (return (call $tell (i32.const 8)))))
    (if (i32.eq (local.get $count) (i32.const 2))
      (then (call $leave (i64.const 42) (i32.const 0)) (return (call $tell (i32.const 8)))))
    (if (i32.eq (local.get $count) (i32.const 3))
      (then (call $rejoin (i64.const 42) (i32.const 0)) (return (call $tell (i32.const 8)))))
    (if (i32.eq (local.get $count) (i32.const 4))
      (then (call $history (i64.const 42) (i32.const 0)) (return (call $tell (i32.const 4)))))
    (if (i32.eq (local.get $count) (i32.const 5))
      (then
        (call $signal (i64.const 42) (i64.const 7) (i32.const 256) (i32.const 4) (f64.const 1)
          (i32.const 0))
        (return (call $tell (i32.const 4)))))
    (call $signal (i64.const 42) (i64.const 7) (i32.const 256) (i32.const 0) (f64.const 1)
      (i32.const 0))
    (call $tell (i32.const 4))))
