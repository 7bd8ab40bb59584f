;; A caller whose entry point takes and gives other types than the contract says.
(component
  (core module $code
    (func (export "run") (result i32) (i32.const 0)))
  (core instance $code (instantiate $code))
  (func (export "run") (result u32) (canon lift (core func $code "run"))))
