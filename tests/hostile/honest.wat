;; An honest component: the record of nine bytes and the policy of the shipped one, in
;; as few words as possible. The tests of hostile components put code in the place of
;; its marks: at the beginning of each function there is one with the function's name,
;; and `each` marks all of them.
;;
;; Memory: 0 to 1,023 for the result of a call, arguments from 64 KiB on, and above those of
;; `restore` its entries. Whatever a call took is free again in the next.
(module
  (memory (export "memory") 16)
  (global $free (mut i32) (i32.const 65536))
  (global $calls (mut i32) (i32.const 0))
  (;globals;)

  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $free))
    (global.set $free
      (i32.and (i32.add (local.get $at) (i32.add (local.get $size) (i32.const 7)))
        (i32.const -8)))
    (local.get $at))

  ;; Writes a membership and returns where it is.
  (func $membership
    (param $at i32) (param $user i64) (param $status i32) (param $left_at_ns i64) (result i32)
    (i64.store (local.get $at) (local.get $user))
    (i32.store8 offset=8 (local.get $at) (local.get $status))
    (i32.store8 offset=16 (local.get $at) (i64.ne (local.get $left_at_ns) (i64.const 0)))
    (i64.store offset=24 (local.get $at) (local.get $left_at_ns))
    (local.get $at))

  (func $is_record (param $at i32) (param $length i32) (result i32)
    (if (i32.ne (local.get $length) (i32.const 9)) (then (return (i32.const 0))))
    (i32.lt_u (i32.load8_u (local.get $at)) (i32.const 2)))

  ;; Writes the membership that a record stands for.
  (func $read (param $to i32) (param $user i64) (param $record i32)
    (drop (call $membership (local.get $to) (local.get $user)
      (i32.load8_u (local.get $record)) (i64.load offset=1 (local.get $record)))))

  (func $fan_out (param $status i32) (result i32)
    (select (i32.const 0) (i32.const 3) (local.get $status)))

  (func (export "tidegate:community/membership@0.1.0#leave")
    (param $user i64) (param $status i32) (param $has i32) (param $before i64) (param $now i64)
    (result i32)
    (;each;) (;leave;)
    (call $membership (i32.const 0) (local.get $user) (i32.const 1)
      (select (local.get $now) (local.get $before)
        (i64.gt_u (local.get $now) (local.get $before)))))

  (func (export "tidegate:community/membership@0.1.0#rejoin")
    (param $user i64) (param $status i32) (param $has i32) (param $before i64) (result i32)
    (;each;) (;rejoin;)
    (call $membership (i32.const 0) (local.get $user) (i32.const 0) (local.get $before)))

  (func (export "tidegate:community/membership@0.1.0#status")
    (param $user i64) (param $is_stored i32) (param $record i32) (param $length i32)
    (result i32)
    (;each;) (;status;)
    (global.set $free (i32.const 65536))
    (i64.store (i32.const 0) (i64.const 0))
    (if (i32.eqz (local.get $is_stored)) (then
      (drop (call $membership (i32.const 8) (local.get $user) (i32.const 0) (i64.const 0)))
      (return (i32.const 0))))
    (if (call $is_record (local.get $record) (local.get $length))
      (then (call $read (i32.const 8) (local.get $user) (local.get $record)))
      (else (i32.store8 (i32.const 0) (i32.const 1)) (i64.store (i32.const 8) (i64.const 0))))
    (i32.const 0))

  (func (export "tidegate:community/membership@0.1.0#signal")
    (param $user i64) (param $status i32) (param $has i32) (param $before i64) (result i32)
    (;each;) (;signal;)
    (call $fan_out (local.get $status)))

  (func (export "tidegate:community/membership@0.1.0#serialize-membership")
    (param $user i64) (param $status i32) (param $has i32) (param $before i64) (result i32)
    (;each;) (;serialize;)
    (i32.store8 (i32.const 8) (local.get $status))
    (i64.store (i32.const 9) (local.get $before))
    (i32.store (i32.const 0) (i32.const 8))
    (i32.store (i32.const 4) (i32.const 9))
    (i32.const 0))

  (func (export "tidegate:community/membership@0.1.0#deserialize-membership")
    (param $user i64) (param $record i32) (param $length i32) (result i32)
    (;each;) (;deserialize;)
    (global.set $free (i32.const 65536))
    (i64.store (i32.const 0) (i64.const 0))
    (if (call $is_record (local.get $record) (local.get $length)) (then
      (i32.store8 (i32.const 0) (i32.const 1))
      (call $read (i32.const 8) (local.get $user) (local.get $record))))
    (i32.const 0))

  (func (export "tidegate:community/membership@0.1.0#restore")
    (param $users i32) (param $count i32) (param $lengths i32) (param $known i32)
    (param $record i32) (param $rest i32) (result i32)
    (local $entry i32) (local $left i32) (local $length i32)
    (;each;)
    (local.set $entry (global.get $free))
    (global.set $free (i32.const 65536))
    (i32.store (i32.const 0) (local.get $entry))
    (i32.store (i32.const 4) (local.get $count))
    (local.set $left (local.get $count))
    (block $done (loop $next
      (br_if $done (i32.eqz (local.get $left)))
      (i64.store (local.get $entry) (i64.const 0))
      ;; A record whose length or bytes are missing leaves none for those behind it.
      (local.set $length (i32.const -1))
      (if (local.get $known) (then (local.set $length (i32.load (local.get $lengths)))))
      (if (i32.gt_u (local.get $length) (local.get $rest))
        (then (local.set $length (i32.const 0)) (local.set $rest (i32.const 0))))
      (if (call $is_record (local.get $record) (local.get $length)) (then
        (i32.store8 (local.get $entry) (i32.const 1))
        (call $read (i32.add (local.get $entry) (i32.const 8))
          (i64.load (local.get $users)) (local.get $record))
        (i32.store8 offset=40 (local.get $entry)
          (call $fan_out (i32.load8_u (local.get $record))))))
      (local.set $record (i32.add (local.get $record) (local.get $length)))
      (local.set $rest (i32.sub (local.get $rest) (local.get $length)))
      (if (local.get $known) (then
        (local.set $lengths (i32.add (local.get $lengths) (i32.const 4)))
        (local.set $known (i32.sub (local.get $known) (i32.const 1)))))
      (local.set $users (i32.add (local.get $users) (i32.const 8)))
      (local.set $entry (i32.add (local.get $entry) (i32.const 48)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br $next)))
    (;restore;)
    (i32.const 0))
  (;functions;))
