//! What must hold for files of events of any bytes, in `cargo test` and in fuzz targets.

use tidegate::events::{Columns, Event, EventReader, Format, ReadError, Subject};

/// Reads the input as events and as profiles.
pub(crate) fn check(input: &[u8], format: Format) {
    for subject in [Subject::Events(Columns::default()), Subject::Profiles(None)] {
        read_events(input, format, &subject);
    }
}

/// Reads to the end, which comes after no more events than there are lines.
fn read_events(input: &[u8], format: Format, subject: &Subject) {
    let mut reader = match EventReader::new(input, format, subject) {
        Ok(reader) => reader,
        Err(ReadError::Header(_)) => return,
        Err(error) => panic!("{error}"),
    };
    let lines = input.split(|byte| matches!(byte, b'\n' | b'\r')).count();
    let mut line = 0;
    for _ in 0..=lines {
        match reader.next_event() {
            Ok(None) => return,
            Ok(Some(Event::Signal { weight, .. })) => assert!(!weight.is_infinite()),
            Ok(Some(_)) => {}
            Err(ReadError::Line(bad)) => {
                assert!(!bad.reason.is_empty());
                assert_eq!(bad.line, reader.line());
            }
            Err(error) => panic!("{error}"),
        }
        // Lines that end with a carriage return alone are records, but have no number.
        assert!(reader.line() > line || input.contains(&b'\r'));
        line = reader.line();
    }
    panic!("more events than lines");
}
