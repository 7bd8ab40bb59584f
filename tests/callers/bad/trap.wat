;; A caller that makes user 42 leave and then traps: the leave holds.
(component
  (import "tidegate:community/types@0.1.0" (instance $types
    (type $status (enum "active" "left"))
    (export "membership-status" (type $membership-status (eq $status)))
    (type $membership (record
      (field "user-id" u64)
      (field "status" $membership-status)
      (field "left-at-ns" (option u64))))
    (export "community-membership" (type (eq $membership)))))
  (alias export $types "community-membership" (type $membership))
  (import "tidegate:community/community-layer@0.1.0" (instance $layer
    (export "community-membership" (type $community-membership (eq $membership)))
    (type $case (variant
      (case "not-durable" string)
      (case "malformed-record" string)
      (case "invalid-signal" string)
      (case "access-denied" string)
      (case "storage" string)
      (case "component" string)))
    (export "error" (type $error (eq $case)))
    (export "leave"
      (func (param "user" u64) (result (result $community-membership (error $error)))))))

  (core module $memory
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
  (core instance $memory (instantiate $memory))
  (core func $leave (canon lower (func $layer "leave")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))

  (core module $code
    (import "layer" "leave" (func $leave (param i64 i32)))
    (func (export "run") (param i32 i32) (result i32)
      (call $leave (i64.const 42) (i32.const 0))
      unreachable))
  (core instance $code (instantiate $code
    (with "layer" (instance (export "leave" (func $leave))))))
  (func (export "run") (param "args" (list string)) (result (result string (error string)))
    (canon lift (core func $code "run")
      (memory (core memory $memory "memory")) (realloc (core func $memory "realloc")))))
